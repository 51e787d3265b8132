"""No command can check this item: a person judges it, with all that there is to know."""

# /// raymond
# retries: 2
# ///

from raymond.loops import judging
from raymond.loops.step import Step, end, tag
from raymond.loops.work import Work

step = Step()
question = judging.question(Work(step), step.input)
end(tag("ask", question, {"next": "JUDGED.py", "approve": "person"}))
