note() { echo "$1 $RAYMOND_AGENT_ID $RAYMOND_STATE $RAYMOND_ATTEMPT $RAYMOND_STEP_KEY" >> "$LEDGER"; }
note begin
rm -f old
mkdir -p sub/deep
echo made > sub/deep/made
echo changed > sub/file
note end
echo '<goto>WORK.md</goto>'
