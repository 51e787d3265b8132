. "$RAYMOND_WORKFLOW_DIR/lib/note.sh"
note begin
note end
echo "<reset input='$RAYMOND_INPUT: $(cat "$RAYMOND_TASK_FOLDER/sum")'>END.md</reset>"
