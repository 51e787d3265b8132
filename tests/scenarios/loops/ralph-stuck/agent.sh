grep -q something "$PROMPT" && echo x >> x.txt
grep -q once "$PROMPT" && [ ! -e x.txt ] && echo x > x.txt
echo "I am done."
echo LOOP_COMPLETE
