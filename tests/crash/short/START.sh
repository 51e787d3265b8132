. "$RAYMOND_WORKFLOW_DIR/lib/note.sh"
note begin
note end
echo '<fork n="one">WORK.sh</fork>'
echo '<goto>THINK.md</goto>'
