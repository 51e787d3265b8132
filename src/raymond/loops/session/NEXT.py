"""Which item is next: what became of the last one, the queue as it is now, and the limits decide."""

# /// raymond
# retries: 2
# ///

from raymond.loops import next_item
from raymond.loops.step import Step, end

end(*next_item.turn(Step()))
