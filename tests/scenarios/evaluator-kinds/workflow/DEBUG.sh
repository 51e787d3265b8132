echo '<goto>START</goto>'
