echo "$RAYMOND_AGENT_ID $RAYMOND_STATE $RAYMOND_VISIT $RAYMOND_STEP_KEY" >> "${LEDGER:-/dev/null}"
echo "<ask next=\"ANSWERED.md\">go on after: $RAYMOND_ERROR?</ask>"
