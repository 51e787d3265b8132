grep "It is marked as done" "$PROMPT"
sed -n '2,/^$/p' docs/implementation/1-core/1.4-answers.md | head -n 1
echo because > why.txt
printf '# Mine\n' >> docs/implementation/1-core/1.4-answers.md
echo ITERATION_COMPLETE
