"""No command can check this item: a person judges it, with all that there is to know."""

# /// raymond
# retries: 2
# ///

from raymond.loops import judging
from raymond.loops.item_run import ItemRun
from raymond.loops.step import Step, end, tag

step = Step()
end(tag("ask", judging.question(ItemRun(step), step.input), {"next": "JUDGED.py", "approve": "person"}))
