"""Where a loop begins: its tree is made, and each check is tried before an agent is paid."""

# /// raymond
# retries: 2
# ///

from raymond.loops import next_item
from raymond.loops.step import Step, end

step = Step()
step.open_tree()
end(next_item.opening(step))
