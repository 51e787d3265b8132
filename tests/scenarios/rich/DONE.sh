echo "$RAYMOND_AGENT_ID $RAYMOND_STATE $RAYMOND_VISIT $RAYMOND_STEP_KEY" >> "${LEDGER:-/dev/null}"
echo "<print>done</print>"
echo "<result>$RAYMOND_INPUT in $(basename "$PWD")</result>"
