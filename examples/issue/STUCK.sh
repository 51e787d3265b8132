#!/usr/bin/env bash
# The subtask ends all the same: the main conversation decides what to do about it.
set -euo pipefail
echo "<result>Not finished: the tests are still red, see $RAYMOND_TASK_FOLDER/test.log.</result>"
