"""The iteration did not end green: its changes stay for the next one, or are committed anyway."""

# /// raymond
# retries: 2
# ///

from raymond.loops import ralph
from raymond.loops.item_run import ItemRun
from raymond.loops.step import Step, end

step = Step()
end(ralph.red(ItemRun(step)))
