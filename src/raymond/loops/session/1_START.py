"""Where a loop begins: its tree is made, and each check is tried before an agent is paid."""

# /// raymond
# retries: 2
# ///

from raymond.loops import next_item
from raymond.loops.step import Step, document, end, tag

step = Step()
step.open_tree()
if refusal := next_item.refused(step):
    end(tag("result", document(refusal.write())))
end(tag("goto", "NEXT.py"))
