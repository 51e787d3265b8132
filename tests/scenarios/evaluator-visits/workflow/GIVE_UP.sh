echo '<result>given up</result>'
