echo 42 > answer.txt
echo ITERATION_COMPLETE
