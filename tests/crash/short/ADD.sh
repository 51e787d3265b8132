. "$RAYMOND_WORKFLOW_DIR/lib/note.sh"
note begin
note end
echo "<result>$(cat "$RAYMOND_INPUT_FILE") and added</result>"
