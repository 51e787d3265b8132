mkdir -p sub
echo "<reset cd=\"sub\" input=\"$RAYMOND_INPUT in a folder of its own\">DIG.md</reset>"
