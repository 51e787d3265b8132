"""Where a loop begins: what it writes beside the work is kept out of git."""

# /// raymond
# retries: 2
# ///

from raymond.loops.step import Step, end, tag

step = Step()
step.repository.exclude(step.documents.excluded())
end(tag("goto", "NEXT.py"))
