echo '<result>shipped</result>'
