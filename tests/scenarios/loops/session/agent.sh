if grep -q impossible "$PROMPT"; then
  echo try > tries.txt
  echo "Hm."
elif grep -q note "$PROMPT"; then
  echo note > note.txt
  echo ITERATION_COMPLETE
else
  echo 42 > answer.txt
  printf '## Summary\nI wrote it.\n\nITERATION_COMPLETE\n'
fi
