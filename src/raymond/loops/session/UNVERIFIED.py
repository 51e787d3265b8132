"""The item is not done, whatever its document says: let an agent do it."""

# /// raymond
# retries: 2
# ///

from raymond.loops import attempt
from raymond.loops.step import Step, end, tag

step = Step()
end(tag("reset", step.settings.worker, {"input": attempt.unverified(step.text("error"), step.text("gate"))}))
