"""Write down the tasks that an agent proposes for a story."""

# /// raymond
# retries: 2
# ///

from raymond.loops import attempt
from raymond.loops.item_run import ItemRun
from raymond.loops.step import Step, end, tag

step = Step()
state, given = attempt.prepare_plan(ItemRun(step), step.input)
end(tag("goto", state, {"input": given}))
