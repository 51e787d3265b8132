n=$(sed -n 's/^(This is iteration \([0-9]*\) of .*/\1/p' "$PROMPT")
[ -z "$n" ] || echo "$n" > n.txt
echo "I counted to $(cat n.txt)."
