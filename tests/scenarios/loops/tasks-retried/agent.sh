if grep -q '^# 1.4.1' "$PROMPT" && [ ! -e $TEST_ROOM/../tried ]; then
  touch $TEST_ROOM/../tried
  touch tries.txt
else
  echo 42 > answer.txt
fi
echo ITERATION_COMPLETE
