grep -q 42 answer.txt
