"""Where a loop begins: with its check, if it has one, so that it is known whether it was red before the work."""

# /// raymond
# retries: 2
# ///

from raymond.loops.step import Step, end, tag

step = Step()
if step.is_repository:
    step.repository.exclude(step.documents.excluded())
end(tag("goto", "BEFORE.py" if step.settings.gate else "NEXT.py"))
