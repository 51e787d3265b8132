"""What a person says to a loop beside its work: the queue, learnings, and the workflow itself."""

import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime

from raymond import pasted
from raymond.errors import UsageError
from raymond.loops import documents
from raymond.loops.documents import LEARNINGS, LOGS, Documents
from raymond.loops.formats import queue
from raymond.loops.formats.foreign_text import one_line
from raymond.loops.opening import EXAMPLE
from raymond.loops.starting import Found
from raymond.loops.wishes import EDITED, LEARNED, add_learned


def edit(found: Documents, loop: Found | None, open_editor: Callable[[str], None], tell: Callable[[str], None]) -> int:
    """Let a person edit the queue: right in its log, or beside it while an agent works there."""
    name = found.newest()
    if not name:
        raise UsageError(f"there is no session log in {found.shown(LOGS)}", hint=EXAMPLE)
    path = found.path(LOGS, name)
    for item in queue.read(documents.read(path)).items:
        if item.proposed:
            tell(f"proposed by an agent: {one_line(item.title)} (remove *proposed* to run it)")
    if loop is None or loop.loop is None or not loop.loop.ledger.open or loop.loop.run.is_over:
        open_editor(path)
        return 0
    aside = loop.loop.file(EDITED)
    if not os.path.exists(aside):
        documents.write(aside, documents.read(path))
    before = documents.read(aside)
    open_editor(aside)
    if documents.read(aside) == before:
        os.unlink(aside)
        tell("nothing was changed")
    else:
        tell("an agent is at work: this counts from the next item on")
    return 0


def learn(found: Documents, loop: Found | None, text: str) -> str:
    """Add a learning; while an agent works, it is added when that has ended. What was done, in words."""
    line = f"- {datetime.now(UTC).astimezone():%Y-%m-%d}: {one_line(text)}"
    if loop and loop.loop and loop.loop.ledger.open and not loop.loop.run.is_over:
        aside = loop.loop.file(LEARNED)
        documents.write(aside, f"{documents.read(aside)}{line}\n")
        return f"an agent is at work: {found.shown(LEARNINGS)} gets this for the next item"
    add_learned(found, f"{line}\n")
    return f"added to {found.shown(LEARNINGS)}"


def eject(workflow: str, folder: str) -> str:
    """Copy a workflow that ships, to be changed; what was done, in words."""
    if os.path.lexists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
        raise UsageError(f"{folder} is in the way", hint="name a folder that does not exist")
    shutil.copytree(workflow, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    return f"copied to {folder}: change it, then start with {pasted.flag('--workflow', folder, 'DIR')}"
