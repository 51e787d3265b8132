# Several forks from a script: one plain, one that sleeps first, one that fails; and a wait for all of them.
echo "$RAYMOND_AGENT_ID $RAYMOND_STATE $RAYMOND_VISIT $RAYMOND_STEP_KEY" >> "${LEDGER:-/dev/null}"
echo '<print>spreading</print>'
echo '<fork part="one">PART.sh</fork>'
echo '<fork part="two" after="50ms" input="late for {{run_input}}">PART.sh</fork>'
echo '<fork part="three" cd="sub">PART.sh</fork>'
echo '<wait failures="ok">GATHER.md</wait>'
