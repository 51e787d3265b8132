. "$RAYMOND_WORKFLOW_DIR/lib/note.sh"
note begin
note end
echo '<ask next="GO.sh">Go on?</ask>'
