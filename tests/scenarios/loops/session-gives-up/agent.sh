if grep -q '^# Write' "$PROMPT"; then
  printf 'I lack a key.\n\nIt is not here.\nITERATION_FAILED\n'
elif grep -q '^# Wait' "$PROMPT"; then
  echo ITERATION_COMPLETE
else
  echo ITERATION_COMPLETE
fi
