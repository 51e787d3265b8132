[ ! -e $TEST_ROOM/../on ] || echo more >> log.txt
echo fine
