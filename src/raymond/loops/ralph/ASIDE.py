"""A person has to look before the iteration can count: keep it, and go on from where it began."""

# /// raymond
# retries: 2
# ///

import json

from raymond.loops import iterations
from raymond.loops.ledger import REVIEW
from raymond.loops.step import Step, document, end, tag
from raymond.loops.work import Work

step = Step()
work = Work(step)
found = iterations.inspected(work)
gate = json.loads(step.text("gate_result") or "{}")

told_verdict, told_reason = json.loads(step.input or '["", ""]')
verdict = found.verdict or told_verdict or gate.get("verdict", REVIEW)
verdict = REVIEW if verdict == "not comparable" else verdict
told = (step.text("error"), *gate.get("changes", []))
reason = told_reason or found.reason or "; ".join(one for one in told if one)
end(tag("result", document(iterations.aside(work, found, verdict, reason).write())))
