"""The item did not count: another attempt in a fresh session, or its end."""

# /// raymond
# retries: 2
# ///

from raymond.loops import attempt
from raymond.loops.item_run import ItemRun
from raymond.loops.step import Step, end, tag

step = Step()
run = ItemRun(step)
failure = attempt.read_failure(step.input, step.text("error"), step.text("gate"), step.gate)
if failure.may_retry and step.visit < run.attempts:
    end(tag("reset", attempt.begin_again(run), {"input": attempt.explain_to_next(failure, is_plan=run.item.is_plan)}))
end(tag("goto", "COMMIT.py", {"input": attempt.end_item(run, failure).write()}))
