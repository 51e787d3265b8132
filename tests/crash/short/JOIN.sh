. "$RAYMOND_WORKFLOW_DIR/lib/note.sh"
note begin
note end
echo "<wait input='$RAYMOND_RESULT'>ASK.sh</wait>"
