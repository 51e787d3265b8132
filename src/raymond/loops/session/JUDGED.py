"""A person has judged the item."""

# /// raymond
# retries: 2
# ///

from raymond.loops import attempt, judging
from raymond.loops.item_run import ItemRun
from raymond.loops.step import Step, end, tag

step = Step()
missing, reply = judging.take(ItemRun(step), step.input)
if missing:
    end(tag("goto", "FAILED.py", {"input": f"{attempt.REFUSED}{missing}"}))
end(tag("goto", "PREPARE.py", {"input": reply}))
