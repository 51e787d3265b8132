echo "I cannot."
echo ITERATION_FAILED
