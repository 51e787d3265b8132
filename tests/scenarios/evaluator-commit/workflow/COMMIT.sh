echo '<result>committed</result>'
