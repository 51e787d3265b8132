echo x >> "$TEST_ROOM/../words"
echo "failed: $(wc -l < "$TEST_ROOM/../words" | tr 0-9 a-j)"
exit 1
