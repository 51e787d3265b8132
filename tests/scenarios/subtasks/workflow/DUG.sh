echo "<result>dug in $RAYMOND_RESULT</result>"
