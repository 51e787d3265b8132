"""Somebody says that the item is done, which is checked, or that it cannot be done, which is believed."""

# /// raymond
# retries: 2
# ///

from raymond.loops import markers
from raymond.loops.step import Step, end, tag

reply = Step().input
end(tag("goto", "FAILED.py" if markers.has(reply, markers.FAILED) else "CHECK.py", {"input": reply}))
