# /// raymond
# on_error: START.md
# ///
if [ -e mended ]; then echo "<result>mended</result>"; else echo "nothing is mended" >&2; exit 3; fi
