if [ -e docs/failures.md ]; then
  echo 42 > answer.txt
else
  touch tries.txt
fi
echo ITERATION_COMPLETE
