# /// raymond
# description: What kind of error it is decides who fixes it.
# evaluator:
#   pattern: (SYNTAX|RUNTIME|LOGIC)
#   verdicts:
#     SYNTAX: <goto>FORMAT</goto>
#     RUNTIME: <goto>DEBUG</goto>
#     LOGIC: <goto input="{{state}} was wrong">THINK</goto>
#     none: keep
# ///
case $RAYMOND_VISIT in
1) echo "SYNTAX error in line 3" ;;
2) echo "Runtime: RUNTIME error: division by zero" ;;
3) echo "LOGIC: 2 + 2 is 5" ;;
*) echo "all green" ;;
esac
echo "<result>checked</result>"
