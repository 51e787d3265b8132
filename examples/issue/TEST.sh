#!/usr/bin/env bash
# /// raymond
# timeout: 1h
# ///
# Raymond runs the tests, not the agent: what counts is the exit code. --var test="COMMAND" says how.
# They write to a file, so this step is silent while they run; `timeout` says for how long it may be.
set -euo pipefail
log=$RAYMOND_TASK_FOLDER/test.log
if bash -c "${RAYMOND_VAR_test:-make test}" > "$log" 2>&1; then
  echo "<result>Built as planned, and all tests pass.</result>"
else
  echo "<goto>FIX</goto>"
fi
