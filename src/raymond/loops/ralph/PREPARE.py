"""The check is green, or there is none: look at what else was done, run the hooks, plan the commit."""

import json

from raymond.loops import finishing, iterations
from raymond.loops.step import Step, document, end, tag
from raymond.loops.work import Work

step = Step()
work = Work(step)
gate = json.loads(step.text("gate_result") or "{}")
reply = step.input
if step.settings.commit == "never":
    end(tag("result", document(iterations.green(work, reply).write())))

is_verified = not work.check or finishing.is_verified(work, gate)
found = iterations.inspected(work)
if found.verdict:
    end(tag("goto", "ASIDE.py"))
if not is_verified:
    end(tag("goto", "RECHECK.py", {"input": reply}))

hooks = finishing.run_hooks(work, found)
if hooks.rejection is not None:
    end(tag("goto", "REJECTED.md", {"input": hooks.rejection}))
if hooks.changed and work.check:
    end(tag("goto", "RECHECK.py", {"input": reply}))

plan = iterations.plan(work, found, gate, reply)
if isinstance(plan, str):
    end(tag("goto", "REJECTED.md", {"input": plan}))
end(tag("goto", "COMMIT.py", {"input": json.dumps(plan)}))
