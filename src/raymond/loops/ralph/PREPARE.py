"""The check is green, or there is none: look at what was done, and let the hooks see it."""

# /// raymond
# retries: 2
# ///

from raymond.loops import ralph
from raymond.loops.item_run import ItemRun
from raymond.loops.step import Step, end

step = Step()
end(ralph.prepare(ItemRun(step), step.input))
