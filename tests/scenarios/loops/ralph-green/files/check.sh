grep -q 2 n.txt
