echo "$RAYMOND_AGENT_ID $RAYMOND_STATE $RAYMOND_VISIT $RAYMOND_STEP_KEY" >> "${LEDGER:-/dev/null}"
echo "<result>$RAYMOND_VAR_topic in $(basename "$PWD"): $RAYMOND_INPUT</result>"
