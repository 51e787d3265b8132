echo "$RAYMOND_AGENT_ID $RAYMOND_STATE $RAYMOND_VISIT $RAYMOND_STEP_KEY" >> "${LEDGER:-/dev/null}"
if [ "$RAYMOND_VAR_part" = three ]; then
  echo "no part three in $(basename "$PWD")" >&2
  exit 1
fi
echo "<result>part $RAYMOND_VAR_part, $RAYMOND_INPUT</result>"
