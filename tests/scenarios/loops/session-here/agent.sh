if [ -e $TEST_ROOM/../go ]; then echo 42 > answer.txt; else echo 41 > answer.txt; fi
echo done
