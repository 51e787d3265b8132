"""The iteration did not end green: its changes stay for the next one, are committed anyway, or are set aside."""

# /// raymond
# retries: 2
# ///

import json

from raymond.loops import failing, iterations
from raymond.loops.step import Step, document, end, tag
from raymond.loops.work import Work

step = Step()
work = Work(step)
gate = json.loads(step.text("gate_result") or "{}")
failure = failing.read(step.input, step.text("error"), step.text("gate"), gate, work.rejection)
found = iterations.inspected(work)
if found.verdict:  # what stays in the tree would be part of the next green commit
    end(tag("goto", "ASIDE.py", {"input": json.dumps([found.verdict, found.reason])}))
if step.settings.commit == "always":
    plan = iterations.plan(work, found, {}, step.input, failure)
    if isinstance(plan, dict) and "tree" in plan:
        end(tag("goto", "COMMIT.py", {"input": json.dumps(plan)}))
end(tag("result", document(iterations.red(work, found, failure).write())))
