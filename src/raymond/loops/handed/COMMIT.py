"""Commit what was checked. Repeated after a kill, this finds the commit instead of making another."""

# /// raymond
# retries: 2
# ///

import json

from raymond.loops import committing
from raymond.loops.step import Step, document, end, tag

step = Step()
entry = committing.commit(step, json.loads(step.input))
end(tag("result", document(entry.write())))
