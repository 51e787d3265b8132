"""Commit what was checked. Repeated after a kill, this finds the commit instead of making another."""

# /// raymond
# retries: 2
# ///

import json

from raymond.loops import committing
from raymond.loops.ledger import Reported
from raymond.loops.step import Step, document, end, tag

step = Step()
given = json.loads(step.input)
entry = committing.commit(step, given)
end(tag("result", document(Reported(entry, given["reply"]).write())))
