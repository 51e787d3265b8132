. "$RAYMOND_WORKFLOW_DIR/lib/note.sh"
note begin
echo "$RAYMOND_INPUT" > "$RAYMOND_TASK_FOLDER/sum"
note end
echo "<ask next='RESET.sh'>Send it?</ask>"
