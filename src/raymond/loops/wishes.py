"""What a person has left for a loop while an agent was at work: it counts from the next item on."""

import os

from raymond.loops import documents
from raymond.loops.documents import LEARNINGS, LOGS, Documents
from raymond.loops.formats import queue, sections

STOP = "stop"
"""The file in the folder of the loop that asks it to stop after the item it is at."""
EDITED = "edited.md"
"""The one with a queue that a person has edited."""
LEARNED = "learned.md"
"""The one with learnings."""
_HEADING = "# Critical learnings"


def apply_edit(found: Documents, aside: str, done: set[str]) -> None:
    """Put a queue that a person edited into the newest log, less what is done by now; items that came since stay."""
    if not os.path.exists(aside):
        return
    name = found.newest()
    path = found.path(LOGS, name)
    text = documents.read(path)
    wanted = [one for one in queue.read(documents.read(aside)).items if queue.key(one) not in done]
    known = {queue.key(one) for one in wanted}
    since = [one for one in queue.read(text).items if queue.key(one) not in known and one.proposed]
    documents.write(path, queue.rewritten(text, [one.raw for one in (*wanted, *since)]))
    os.unlink(aside)


def add_learned(found: Documents, lines: str) -> None:
    """Add lines to docs/critical-learnings.md."""
    path = found.path(LEARNINGS)
    text = documents.read(path) or f"{_HEADING}\n\n"
    begun = "" if text.endswith("\n") else sections.newline(text)
    documents.write(path, text + begun + sections.adapted(lines, sections.newline(text)))


def apply_learned(found: Documents, aside: str) -> None:
    """Add what a person wrote while an agent worked."""
    if os.path.exists(aside):
        add_learned(found, documents.read(aside))
        os.unlink(aside)
