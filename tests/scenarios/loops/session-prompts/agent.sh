echo '## Summary'
sed 's/^/| /' "$PROMPT"
echo x >> x.txt
