"""The check is green, or there is none: look at what else was done, run the hooks, plan the commit."""

# /// raymond
# retries: 2
# ///

import json

from raymond.loops import finishing, iterations
from raymond.loops.ledger import Reported, entry_of
from raymond.loops.step import Step, document, end, tag
from raymond.loops.work import Work

step = Step()
work = Work(step)
gate = json.loads(step.text("gate_result") or "{}")
reply = step.input
if step.settings.commit == "never":
    end(tag("result", document(iterations.green(work, reply).write())))

found = iterations.inspected(work, lambda: finishing.is_verified(work, gate))
if found.verdict:
    end(tag("goto", "ASIDE.py", {"input": json.dumps([found.verdict, found.reason])}))
if not found.is_checked:
    end(tag("goto", "RECHECK.py", {"input": reply}))

hooks = finishing.run_hooks(work, found)
if hooks.rejection is not None:
    end(tag("goto", "REJECTED.md", {"input": hooks.rejection}))
if hooks.changed:
    end(tag("goto", "RECHECK.py", {"input": reply}))

plan = iterations.plan(work, found, gate, reply)
if isinstance(plan, finishing.Hooks):
    where = "RECHECK.py" if plan.rejection is None else "REJECTED.md"
    end(tag("goto", where, {"input": reply if plan.rejection is None else plan.rejection}))
if "tree" not in plan:
    end(tag("result", document(Reported(entry_of(plan["entry"]), reply).write())))
end(tag("goto", "COMMIT.py", {"input": json.dumps(plan)}))
