"""A person has to look before the item can count: keep it, and go on without it."""

# /// raymond
# retries: 2
# ///

import json

from raymond.loops import failing
from raymond.loops.ledger import REVIEW
from raymond.loops.step import Step, document, end, tag
from raymond.loops.work import Work

step = Step()
work = Work(step)
found = work.inspect()
gate = json.loads(step.text("gate_result") or "{}")

told_verdict, told_reason = json.loads(step.input or '["", ""]')
verdict = found.verdict or told_verdict or gate.get("verdict", REVIEW)
verdict = REVIEW if verdict == "not comparable" else verdict
told = (step.text("error"), *gate.get("changes", []))
reason = told_reason or found.reason or "; ".join(one for one in told if one)
entry = failing.end(work, found, verdict=verdict, error=reason, action="aside", attempt=max(1, step.visit))
end(tag("result", document(entry.write())))
