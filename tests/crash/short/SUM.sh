. "$RAYMOND_WORKFLOW_DIR/lib/note.sh"
note begin
note end
echo '<function return="JOIN.sh" input="{{result}}">ADD.sh</function>'
