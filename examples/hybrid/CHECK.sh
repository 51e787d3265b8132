#!/usr/bin/env bash
# /// raymond
# max_visits: 4
# then: GIVE_UP
# ///
# Checks what can be checked without a model, and says exactly what is wrong.
set -euo pipefail
message=$RAYMOND_TASK_FOLDER/message.txt
cp "$RAYMOND_INPUT_FILE" "$message"

problem=""
title=$(head -n 1 "$message")
if [ -z "$title" ]; then
  problem="The first line is empty."
elif [ "${#title}" -gt 60 ]; then
  problem="The first line has ${#title} characters."
elif [ "${title%.}" != "$title" ]; then
  problem="The first line ends with a full stop."
elif [ -n "$(sed -n 2p "$message")" ]; then
  problem="The second line is not empty."
elif grep -q '.\{73\}' "$message"; then
  problem="A line has more than 72 characters."
fi

if [ -z "$problem" ]; then
  echo "<result>"
  cat "$message"
  echo
  echo "</result>"
else
  echo "<print>$problem</print>"
  echo "<function return=\"CHECK\" input=\"Your last message was refused: $problem It is in $message.\">WRITE</function>"
fi
