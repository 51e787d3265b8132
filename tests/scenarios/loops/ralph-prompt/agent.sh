echo "I was told:"
cat "$PROMPT" | tee -a seen.txt
echo "# $(cat $TEST_ROOM/../next)" > $TEST_ROOM/PROMPT.md
