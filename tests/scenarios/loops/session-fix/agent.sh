if grep -q "# Write" "$PROMPT"; then
  echo 42 > answer.txt
  echo ITERATION_COMPLETE
else
  echo try > tries.txt
  echo done
fi
