"""Write down the tasks that an agent proposes for a story."""

# /// raymond
# retries: 2
# ///

import json

from raymond.loops import committing, failing, proposing
from raymond.loops.step import Step, document, end, tag
from raymond.loops.work import Work

step = Step()
work = Work(step)
found = work.inspect()

if found.verdict:
    end(tag("goto", "ASIDE.py", {"input": json.dumps([found.verdict, found.reason])}))
tasks = proposing.read(step.input)
if not tasks:
    end(tag("goto", "FAILED.py", {"input": f"{failing.NO_PLAN}{proposing.NONE}"}))

plan = proposing.plan(work, found, tasks, step.input)
if isinstance(plan, str):
    end(tag("goto", "FAILED.py", {"input": f"{failing.NO_PLAN}{plan}"}))
if "tree" not in plan:
    end(tag("result", document(committing.commit(step, plan).write())))
end(tag("goto", "COMMIT.py", {"input": json.dumps(plan)}))
