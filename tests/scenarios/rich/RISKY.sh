# /// raymond
# on_error: RESCUE.sh
# ///
echo "$RAYMOND_AGENT_ID $RAYMOND_STATE $RAYMOND_VISIT $RAYMOND_STEP_KEY" >> "${LEDGER:-/dev/null}"
echo "it broke in $(basename "$PWD")" >&2
exit 3
