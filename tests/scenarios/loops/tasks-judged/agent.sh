echo art > art.txt
echo ITERATION_COMPLETE
