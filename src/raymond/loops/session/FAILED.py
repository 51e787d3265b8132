"""The item did not count: another attempt in a fresh session, or its end."""

# /// raymond
# retries: 2
# ///

import json

from raymond.loops import failing, finishing
from raymond.loops.ledger import GAVE_UP
from raymond.loops.step import Step, document, end, tag
from raymond.loops.work import Work

step = Step()
work = Work(step)
found = work.inspect()
gate = json.loads(step.text("gate_result") or "{}")
failure = failing.read(step.input, step.text("error"), step.text("gate"), gate, work.rejection)

attempt = step.visit
if failure.may_retry and attempt < work.attempts:
    work.save(found, attempt)
    finishing.forget(work)
    end(tag("reset", failing.again(work, found), {"input": failing.told(failure, is_plan=work.is_plan)}))

verdict = failure.verdict
reply = step.input if verdict == GAVE_UP else ""
action = failing.action_of(work, verdict)
entry = failing.end(work, found, verdict=verdict, error=failure.text, action=action, attempt=attempt, reply=reply)
end(tag("result", document(entry.write())))
