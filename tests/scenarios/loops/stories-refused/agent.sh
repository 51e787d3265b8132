echo 42 > answer.txt
echo because > why.txt
echo ITERATION_COMPLETE
