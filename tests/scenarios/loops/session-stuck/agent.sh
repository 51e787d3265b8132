[ ! -e $TEST_ROOM/../works ] || echo x >> x.txt
echo "I am done."
echo ITERATION_COMPLETE
