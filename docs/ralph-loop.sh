#!/usr/bin/env bash
# The Ralph loop as a script: ralph-loop.sh [MAX_ITERATIONS=5] [PAUSE_ON_FAIL=false]
#
# It sends the file $PROMPT (PROMPT.md) to a fresh agent again and again. If they are set, $GATE is the check that has to be
# green, and $UNTIL is the text with which an agent says that everything is done. The exit code is that of `raymond ralph`:
# 0 nothing more was asked for, 3 paused after a failure, 4 the iterations or the budget were not enough.
set -euo pipefail

flags=(--max-iterations "${1:-5}")
if [ "${2:-false}" = true ]; then flags+=(--pause-on-fail); fi
if [ -n "${GATE:-}" ]; then flags+=(--gate "$GATE"); fi
if [ -n "${UNTIL:-}" ]; then flags+=(--until "$UNTIL"); fi

starting='\] ralph-loop: Starting iteration ([0-9]+)(/([0-9]+))?$'
translated() {
  local line is_done=false
  trap '' INT  # Ctrl-C is for the loop, which still has something to say
  while IFS= read -r line; do
    if [[ $line =~ $starting ]]; then
      line="=== Starting iteration ${BASH_REMATCH[1]} of ${BASH_REMATCH[3]:-any number} ==="
    elif [[ $line == "- Ended: completed:"* ]]; then
      is_done=true
    fi
    printf '%s\n' "$line"
  done
  if $is_done; then echo "Loop completed successfully!"; fi
}

raymond ralph "${PROMPT:-PROMPT.md}" "${flags[@]}" 2>&1 | translated
