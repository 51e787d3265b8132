rm -f old
echo made > made
exit 1
