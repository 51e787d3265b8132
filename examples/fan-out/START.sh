#!/usr/bin/env bash
# One agent for each line of the input, then sleep until all of them have ended.
set -euo pipefail

# A value stands in quotes inside a tag, and a file may have any name.
escape() { sed -e 's/&/\&amp;/g' -e 's/"/\&quot;/g' -e 's/</\&lt;/g' -e 's/>/\&gt;/g'; }

files=$(grep -v '^[[:space:]]*$' "$RAYMOND_INPUT_FILE" | escape || true)
if [ -z "$files" ]; then
  echo "<result>no files, nothing to review</result>"
  exit
fi
while IFS= read -r file; do
  echo "<fork file=\"$file\">REVIEW_FILE</fork>"
done <<< "$files"
# The report names the files whose agent failed, so that is no failure of the run.
echo '<wait failures="ok">COLLECT</wait>'
