"""What a person has left for a loop while an agent was at work: it counts from the next item on."""

import fcntl
import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from raymond.loops import documents
from raymond.loops.documents import LEARNINGS, LOGS, Documents
from raymond.loops.formats import queue_edit, sections
from raymond.store import project as projects
from raymond.system.files import make_private, private

STOP = "stop"
"""The file in the folder of the loop that asks it to stop after the item it is at."""
EDITED = "edited.json"
"""The one with a log as a person opened it, and as they left it."""
LEARNED = "learned.md"
"""The one with learnings."""
_HEADING = "# Critical learnings"


@contextmanager
def alone(found: Documents) -> Iterator[None]:
    """Nobody else leaves or takes a wish meanwhile: what two write at the same time would lose one of them."""
    root = projects.at(found.cwd).root
    make_private(root)
    fd = private(os.path.join(root, "wishes.lock"), os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def leave_edit(found: Documents, aside: str, opened: str, typed: str) -> None:
    """Leave what a person made of a log that they opened; an edit that waits already gets it too."""
    with alone(found):
        before, after = _edit(aside) or (opened, opened)
        documents.write(aside, json.dumps([before, queue_edit.applied(opened, typed, after)]))


def edited(aside: str) -> str | None:
    """The log as an edit that waits would have it; None when there is none."""
    waiting = _edit(aside)
    return waiting[1] if waiting else None


def _edit(aside: str) -> tuple[str, str] | None:
    if not os.path.exists(aside):
        return None
    before, after = json.loads(documents.read(aside))
    return before, after


def apply_edit(found: Documents, aside: str, done: Collection[str]) -> None:
    """Put what a person changed in the queue into the newest log; what was written into it meanwhile stays."""
    if not os.path.exists(aside):
        return
    with alone(found):
        waiting, name = _edit(aside), found.newest()
        if waiting and name:
            path = found.path(LOGS, name)
            documents.write(path, queue_edit.applied(*waiting, documents.read(path), done))
            os.unlink(aside)


def learn(found: Documents, aside: str, line: str) -> None:
    """Add a line to docs/critical-learnings.md, or leave it in `aside` until an agent has ended."""
    with alone(found):
        if aside:
            documents.write(aside, documents.read(aside) + line)
        else:
            _add(found, line)


def _add(found: Documents, lines: str) -> None:
    path = found.path(LEARNINGS)
    text = documents.read(path) or f"{_HEADING}\n\n"
    begun = "" if text.endswith("\n") else sections.newline(text)
    documents.write(path, text + begun + sections.adapted(lines, sections.newline(text)))


def apply_learned(found: Documents, aside: str) -> None:
    """Add what a person wrote while an agent worked."""
    if os.path.exists(aside):
        with alone(found):
            _add(found, documents.read(aside))
            os.unlink(aside)
