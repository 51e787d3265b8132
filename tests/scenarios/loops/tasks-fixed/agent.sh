if grep -q "# 1.4.1a" "$PROMPT"; then
  printf "## Summary\nI was told:\n\n"
  sed -n "/original task/,/failure/p" "$PROMPT"
  echo 42 > answer.txt
fi
echo so > why.txt
echo ITERATION_COMPLETE
