"""The check is green, or there is none: look at what else was done, run the hooks, write the records."""

# /// raymond
# retries: 2
# ///

import json

from raymond.loops import committing, failing, finishing
from raymond.loops.step import Step, document, end, tag
from raymond.loops.work import Work

step = Step()
work = Work(step)
gate = json.loads(step.text("gate_result") or "{}")
reply = step.input
found = work.inspect(lambda: finishing.is_verified(work, gate))

if found.verdict:
    end(tag("goto", "ASIDE.py", {"input": json.dumps([found.verdict, found.reason])}))
if finishing.did_nothing(work, found):
    end(tag("goto", "FAILED.py", {"input": failing.NOTHING}))
if not found.is_checked:
    finishing.forget(work)
    end(tag("goto", finishing.recheck(work), {"input": reply}))

hooks = finishing.run_hooks(work, found)
if hooks.rejection is not None:
    finishing.forget(work)
    end(tag("goto", "REJECTED.md", {"input": hooks.rejection}))
if hooks.changed:
    finishing.forget(work)
    end(tag("goto", finishing.recheck(work, by_hooks=True), {"input": reply}))

if finishing.is_to_be_judged(work, found):
    end(tag("goto", "MANUAL.py", {"input": reply}))

plan = finishing.plan(work, found, gate, reply)
if isinstance(plan, finishing.Hooks):
    finishing.forget(work)
    where = finishing.recheck(work, by_hooks=True) if plan.rejection is None else "REJECTED.md"
    end(tag("goto", where, {"input": reply if plan.rejection is None else plan.rejection}))
if "tree" not in plan:
    end(tag("result", document(committing.commit(step, plan).write())))
end(tag("goto", "COMMIT.py", {"input": json.dumps(plan)}))
