#!/usr/bin/env bash
# --var publish="COMMAND" says how. A script runs at least once: after a crash it may run again, so the command must be
# one that does no harm the second time.
set -euo pipefail
bash -c "${RAYMOND_VAR_publish:-true}" >&2
echo "<result>released $RAYMOND_RUN_INPUT</result>"
