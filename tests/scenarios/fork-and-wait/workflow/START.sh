for file in a.py b.py c.py; do
  echo "<fork file=\"$file\" input=\"look at {{agent_id}}'s list\">CHECK.md</fork>"
done
echo "<wait>REPORT.py</wait>"
