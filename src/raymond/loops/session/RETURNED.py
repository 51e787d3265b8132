"""Internal mode: the item came back. That it was not done is believed, and everything else is checked."""

# /// raymond
# retries: 2
# ///

import json

from raymond.loops import attempt, internal
from raymond.loops.formats import foreign_text
from raymond.loops.next_item import GIT, PAUSE, STOP
from raymond.loops.step import Step, end, tag
from raymond.system import files, folders

step = Step()
reply = step.input
for answered in json.loads(step.text("results") or "[]"):
    found = internal.shown(step)
    internal.seen(step)
    if answered["result"] != "continue":
        files.replace(step.file(STOP), b"")
        internal.changed(step)
        internal.seen(step)  # the loop ends, and asks no more about it
        end(tag("goto", "ASIDE.py", {"input": attempt.aside_for("; ".join(found) or "a person said stop")}))
with folders.opened(step.place.slot.tree):
    found = internal.changed(step)
if found:
    given = {"label": GIT, "question": internal.question(found)}
    end(tag("fork", PAUSE, given), tag("wait", "RETURNED.py", {"failures": "ok", "input": reply}))
is_failed = reply.startswith(attempt.BROKEN) or foreign_text.has_marker(reply, foreign_text.FAILED_MARKER)
end(tag("goto", "FAILED.py" if is_failed else "CHECK_RETURNED.py", {"input": reply}))
