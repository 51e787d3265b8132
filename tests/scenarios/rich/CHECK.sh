# A callee that begins with a script.
echo "$RAYMOND_AGENT_ID $RAYMOND_STATE $RAYMOND_VISIT $RAYMOND_STEP_KEY" >> "${LEDGER:-/dev/null}"
echo '<goto input="{{input}}, checked">VERDICT.md</goto>'
