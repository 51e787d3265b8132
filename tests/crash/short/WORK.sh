. "$RAYMOND_WORKFLOW_DIR/lib/note.sh"
note begin
echo "$RAYMOND_VAR_n" > "$RAYMOND_TASK_FOLDER/kept"
note end
echo "<result>$RAYMOND_VAR_n</result>"
