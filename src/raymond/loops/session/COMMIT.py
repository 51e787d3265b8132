"""Commit how the item ended. Repeated after a kill, this finds the commit instead of making another."""

# /// raymond
# retries: 2
# ///

from raymond.loops import outcome
from raymond.loops.item_run import ItemRun
from raymond.loops.step import Step, document, end, tag

step = Step()
ended = outcome.read(step.input)
try:
    entry = outcome.commit(ItemRun(step), ended)
except outcome.Moved:
    end(tag("goto", "PREPARE.py", {"input": ended.reply}))
end(tag("result", document(entry.write(ended.reply))))
