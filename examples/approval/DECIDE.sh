#!/usr/bin/env bash
# A script reads the answer: whether something is published is not left to a model.
set -euo pipefail
answer=$(tr '[:upper:]' '[:lower:]' < "$RAYMOND_INPUT_FILE" | tr -d '[:space:].!')
case "$answer" in
  yes | y | ok) echo "<goto>PUBLISH</goto>" ;;
  no | n) echo "<result>not released: a person said no</result>" ;;
  *)
    # The answer stands in quotes inside a tag.
    wish=$(sed -e 's/&/\&amp;/g' -e 's/"/\&quot;/g' -e 's/</\&lt;/g' -e 's/>/\&gt;/g' "$RAYMOND_INPUT_FILE")
    echo "<goto input=\"$wish\">REVISE</goto>"
    ;;
esac
