"""Somebody says that the item is done, which is checked, or that it is not or cannot be done, which is believed."""

# /// raymond
# retries: 2
# ///

from raymond.loops import markers
from raymond.loops.step import Step, end, tag

reply = Step().input
is_done = not markers.has(reply, markers.FAILED) and not markers.has(reply, markers.NOT_DONE)
end(tag("goto", "CHECK.py" if is_done else "FAILED.py", {"input": reply}))
