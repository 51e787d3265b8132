"""Internal mode: lease the item to another program. What is asked is the prompt for its agent."""

# /// raymond
# retries: 2
# ///

from raymond.loops import internal
from raymond.loops.step import Step, end, tag

end(tag("ask", internal.prompt(Step()), {"next": "RETURNED.py"}))
