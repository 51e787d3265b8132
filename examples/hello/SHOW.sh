#!/usr/bin/env bash
# A script state: no model, no cost. What was handed over as `input` arrives in the environment.
set -euo pipefail
echo "<print>a greeting of $(wc -w <<< "$RAYMOND_INPUT" | tr -d ' ') words</print>"
echo "<result>$RAYMOND_INPUT</result>"
