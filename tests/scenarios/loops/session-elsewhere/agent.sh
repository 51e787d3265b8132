if grep -q 'loop in this repository has ended' "$PROMPT"; then
  printf '## Completed\nIt was a calm night.\n'
else
  echo 42 > answer.txt
  echo ITERATION_COMPLETE
fi
