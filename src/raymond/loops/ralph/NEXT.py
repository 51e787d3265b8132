"""Whether there is another iteration: what became of the last one, what it said, and the limits decide."""

# /// raymond
# retries: 2
# ///

from raymond.loops import ralph
from raymond.loops.step import Step, end

end(*ralph.turn(Step()))
