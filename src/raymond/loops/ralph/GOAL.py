"""Whether the goal is met: a small model judges what the agent said last, and nothing else."""

# /// raymond
# retries: 2
# evaluator:
#   prompt: JUDGE.md
#   default: <result>UNJUDGED</result>
#   verdicts:
#     DONE: <result>DONE</result>
#     NOT_YET: <result>NOT_YET</result>
#     IMPOSSIBLE: <result>IMPOSSIBLE</result>
# ///

from raymond.loops.step import Step, end, tag

print(Step().variable("reply").replace("<", "("), flush=True)
end(tag("result", "NOT_YET"))
