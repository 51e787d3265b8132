echo 1 >> n.txt
echo "I counted."
