test -e n.txt
