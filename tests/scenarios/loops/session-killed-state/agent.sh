if [ -e $TEST_ROOM/../go ]; then
  echo 42 > answer.txt
  echo ITERATION_COMPLETE
else
  # The machine goes down: its driver, and the agent itself.
  echo half > half.txt
  kill -9 $(sed -n 's/.*"pid": \([0-9]*\).*/\1/p' $TEST_ROOM/docs/.continuous-session-state.json) $$
fi
