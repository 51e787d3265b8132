"""Whether the goal is met: a small model judges what the agent said last."""

# /// raymond
# evaluator:
#   prompt: JUDGE.md
#   default: <result>NOT_YET</result>
#   verdicts:
#     DONE: <result>DONE</result>
#     NOT_YET: <result>NOT_YET</result>
#     IMPOSSIBLE: <result>IMPOSSIBLE</result>
# ///

from raymond.loops.step import Step

print(Step().variable("reply").replace("<", "("))
print("<result>NOT_YET</result>")
