"""Where a loop begins: with its tree, and with its check, if it has one, so that it is known whether it was red."""

# /// raymond
# retries: 2
# ///

from raymond.loops.step import Step, end, tag

step = Step()
step.open_tree()
end(tag("goto", "BEFORE.py" if step.settings.gate else "NEXT.py"))
