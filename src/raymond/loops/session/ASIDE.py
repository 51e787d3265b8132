"""A person has to look before the item can count: keep it, and go on without it."""

# /// raymond
# retries: 2
# ///

from raymond.loops import attempt
from raymond.loops.item_run import ItemRun
from raymond.loops.step import Step, end, tag

step = Step()
end(tag("goto", "COMMIT.py", {"input": attempt.set_aside(ItemRun(step)).write()}))
