#!/usr/bin/env bash
# Prepares: the diff comes from --input, or from what is staged. The agent need not search for it.
set -euo pipefail
diff=$RAYMOND_TASK_FOLDER/diff.txt
cp "$RAYMOND_INPUT_FILE" "$diff"
if [ ! -s "$diff" ]; then
  git diff --staged > "$diff"
fi
if [ ! -s "$diff" ]; then
  echo "nothing is staged" >&2
  exit 1
fi
echo '<function return="CHECK">WRITE</function>'
