#!/usr/bin/env bash
# Ends the subtask: the main conversation learns where the plan is, and nothing of the passes over it.
set -euo pipefail
echo "<result>$RAYMOND_TASK_FOLDER/plan.md</result>"
