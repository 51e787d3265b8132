#!/usr/bin/env bash
# Raymond runs the tests, not the agent: what counts is the exit code. --var test="COMMAND" says how.
set -euo pipefail
log=$RAYMOND_TASK_FOLDER/test.log
if bash -c "${RAYMOND_VAR_test:-make test}" > "$log" 2>&1; then
  echo "<result>Built as planned, and all tests pass.</result>"
else
  echo "<goto>FIX</goto>"
fi
