#!/usr/bin/env bash
# /// raymond
# max_visits: 288
# then: GIVE_UP
# ///
# Looks, and sleeps when there is nothing. The sleep is a line in the journal: no process waits for it alone, and a
# restart keeps the time.
set -euo pipefail
if bash -c "$RAYMOND_RUN_INPUT" >&2; then
  echo "<goto>HANDLE</goto>"
else
  echo "<print>look $RAYMOND_VISIT: nothing yet</print>"
  echo "<goto after=\"${RAYMOND_VAR_every:-5m}\">START</goto>"
fi
