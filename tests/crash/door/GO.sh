. "$RAYMOND_WORKFLOW_DIR/lib/note.sh"
note begin
touch answered
note end
echo "<wait input='$RAYMOND_INPUT'>END.sh</wait>"
