"""The check is green, or there is none: look at what else was done, run the hooks, write the records."""

import json

from raymond.loops import committing, failing, finishing
from raymond.loops.step import Step, document, end, tag
from raymond.loops.work import Work

step = Step()
work = Work(step)
gate = json.loads(step.text("gate_result") or "{}")
reply = step.input
is_verified = not work.check or finishing.is_verified(work, gate)
found = work.inspect()

if found.verdict:
    end(tag("goto", "ASIDE.py"))
if finishing.did_nothing(work, found):
    end(tag("goto", "FAILED.py", {"input": failing.NOTHING}))
if not is_verified:
    end(tag("goto", "RECHECK.py", {"input": reply}))

hooks = finishing.run_hooks(work, found)
if hooks.rejection is not None:
    end(tag("goto", "REJECTED.md", {"input": hooks.rejection}))
if hooks.changed and work.check:
    end(tag("goto", "RECHECK.py", {"input": reply}))

plan = finishing.plan(work, found, gate, reply)
if isinstance(plan, str):
    end(tag("goto", "REJECTED.md", {"input": plan}))
if "tree" not in plan:
    end(tag("result", document(committing.commit(step, plan).write())))
end(tag("goto", "COMMIT.py", {"input": json.dumps(plan)}))
