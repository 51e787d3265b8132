"""A person has judged the item."""

# /// raymond
# retries: 2
# ///

from raymond.loops import failing, judging
from raymond.loops.step import Step, end, tag
from raymond.loops.work import Work

step = Step()
missing, reply = judging.take(Work(step), step.input)
if missing:
    end(tag("goto", "FAILED.py", {"input": f"{failing.REFUSED}{missing}"}))
end(tag("goto", "PREPARE.py", {"input": reply}))
