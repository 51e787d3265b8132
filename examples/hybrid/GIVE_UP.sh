#!/usr/bin/env bash
echo "no message kept to the rules; the last one is in $RAYMOND_TASK_FOLDER/message.txt" >&2
exit 1
