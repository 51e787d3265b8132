echo '<fork>BIG</fork><wait>LAST</wait>'
