"""The iteration did not end green: its changes stay in the tree for the next one, unless they are committed anyway."""

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
if step.settings.commit == "always":
    plan = iterations.plan(work, iterations.inspected(work), {}, step.input, failure)
    if isinstance(plan, dict) and "tree" in plan:
        end(tag("goto", "COMMIT.py", {"input": json.dumps(plan)}))
end(tag("result", document(iterations.red(work, failure).write())))
