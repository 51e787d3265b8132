if [ -e $TEST_ROOM/../says ]; then . $TEST_ROOM/../says; else echo "I looked around."; fi
