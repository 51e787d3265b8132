"""Internal mode: the item came back. That it was not done is believed, and everything else is checked."""

# /// raymond
# retries: 2
# ///

import json

from raymond.loops import failing, internal, markers
from raymond.loops.next_item import GIT, PAUSE, STOP
from raymond.loops.step import Step, end, tag
from raymond.system import files, folders

step = Step()
reply, said = step.input, json.loads(step.text("results") or "[]")
with folders.opened(step.place.slot.tree):
    found = internal.changed(step)
if found and not said:
    given = {"label": GIT, "question": internal.question(found)}
    end(tag("fork", PAUSE, given), tag("wait", "RETURNED.py", {"failures": "ok", "input": reply}))
if found and said[-1]["result"] != "continue":
    files.replace(step.file(STOP), b"")
    end(tag("goto", "ASIDE.py", {"input": failing.aside_for("; ".join(found))}))
if found:
    internal.note(step)
is_failed = reply.startswith(failing.BROKEN) or markers.has(reply, markers.FAILED)
end(tag("goto", "FAILED.py" if is_failed else "CHECK_RETURNED.py", {"input": reply}))
