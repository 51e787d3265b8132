. "$RAYMOND_WORKFLOW_DIR/lib/note.sh"
note begin
note end
echo '<fork next="ASK.sh">HOLD.sh</fork>'
