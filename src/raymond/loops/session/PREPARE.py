"""The check is green, or there is none: look at what was done, let the hooks see it, and say how the item ended."""

# /// raymond
# retries: 2
# ///

from raymond.loops import attempt
from raymond.loops.item_run import ItemRun
from raymond.loops.step import Step, end, tag

step = Step()
run = ItemRun(step)
reply = step.input
state, given = attempt.prepare(run, reply)
end(tag("goto", state, {"input": given}))
