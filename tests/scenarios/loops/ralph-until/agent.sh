# Counts on, and promises in the second turn; without a check it says so on a line, but not alone on it.
n=$(cat n.txt 2> /dev/null || echo 0)
echo $((n + 1)) > n.txt
echo "I counted to $((n + 1))."
if [ -e $TEST_ROOM/../says ]; then
  cat $TEST_ROOM/../says
fi
