. "$RAYMOND_WORKFLOW_DIR/lib/note.sh"
note begin
note end
echo "<result>$RAYMOND_INPUT</result>"
