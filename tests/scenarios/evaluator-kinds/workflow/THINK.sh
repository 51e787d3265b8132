echo "<print>$RAYMOND_INPUT</print><goto>START</goto>"
