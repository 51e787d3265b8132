echo try > tries.txt
echo ITERATION_COMPLETE
