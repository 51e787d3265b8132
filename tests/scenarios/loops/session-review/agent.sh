if grep -q '^# Write the answer' "$PROMPT"; then
  mkdir -p .github
  echo x > .github/ci.yml
  echo other > notes.txt
  echo 42 > answer.txt
else
  echo 7 > two.txt
fi
echo ITERATION_COMPLETE
