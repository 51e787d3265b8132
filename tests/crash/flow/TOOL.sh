note() { echo "$1 $RAYMOND_AGENT_ID $RAYMOND_STATE $RAYMOND_ATTEMPT $RAYMOND_STEP_KEY" >> "$LEDGER"; }
note begin
sleep 0.4
echo "$RAYMOND_STATE" > "made.$RAYMOND_AGENT_ID.$RAYMOND_STATE"
note end
echo '<goto input="{{input}} tool of {{n}}">TOOL2.sh</goto>'
