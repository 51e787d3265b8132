printf "x\n" >> tries.txt
echo ITERATION_COMPLETE
