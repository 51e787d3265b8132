echo "<result>$RAYMOND_INPUT, now in ${PWD##*/}</result>"
