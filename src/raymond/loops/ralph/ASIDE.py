"""A person has to look before the iteration can count: keep it, and go on from where it began."""

# /// raymond
# retries: 2
# ///

from raymond.loops import ralph
from raymond.loops.item_run import ItemRun
from raymond.loops.step import Step, document, end, tag

step = Step()
end(tag("result", document(ralph.aside(ItemRun(step)).write())))
