# A script state: no model, no cost. It forks one agent for each topic and waits for all of them.
topics="features fixes upgrading"
echo "<print>topics: $topics</print>"
for topic in $topics; do
  echo "<fork topic=\"$topic\">WRITE.md</fork>"
done
echo "<wait>ASSEMBLE.md</wait>"
