echo "$RAYMOND_AGENT_ID $RAYMOND_STATE $RAYMOND_VISIT $RAYMOND_STEP_KEY" >> "${LEDGER:-/dev/null}"
echo "<reset cd=\"sub\" input=\"fresh after ${RAYMOND_RESULT}\">LOOP.md</reset>"
