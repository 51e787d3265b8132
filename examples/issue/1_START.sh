#!/usr/bin/env bash
# Somebody who has seen nothing else chooses the issue. To fetch the issues here, write them to
# "$RAYMOND_TASK_FOLDER/issues.txt" and let PICK.md read that file instead of {{run_input}}.
set -euo pipefail
echo '<function return="WORK" model="haiku">PICK</function>'
