"""What a person says to a loop beside its work: the queue, learnings, and the workflow itself."""

import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime

from raymond import pasted
from raymond.errors import UsageError
from raymond.faces.words import many
from raymond.loops import documents, opening, wishes
from raymond.loops.documents import LEARNINGS, LOGS, Documents
from raymond.loops.formats import queue
from raymond.loops.formats.foreign_text import one_line
from raymond.loops.loop_run import LoopRun
from raymond.loops.starting import Found
from raymond.loops.wishes import EDITED, LEARNED
from raymond.system import git


def edit(
    found: Documents, look: Callable[[], Found | None], open_editor: Callable[[str], None], tell: Callable[[str], None]
) -> int:
    """Let a person edit the queue: right in its log, or in a copy while an agent works there."""
    opening.check_folder(found, "edit")
    name = opening.newest(found)
    path = found.path(LOGS, name)
    for item in queue.read(documents.read(path)).items:
        if item.proposed:
            tell(f"proposed by an agent: {one_line(item.title)} (remove *proposed* to run it)")
    loop = _at_work(look())
    if loop is None:
        open_editor(path)
        _check(documents.read(path), found.shown(LOGS, name), tell)
        return 0
    aside, copy = loop.file(EDITED), loop.file(f"editing-{os.urandom(4).hex()}.md")
    opened = wishes.edited(aside) or documents.read(path)
    documents.write(copy, opened)
    try:
        open_editor(copy)
        typed = documents.read(copy)
    finally:
        os.unlink(copy)
    if typed == opened:
        tell("nothing was changed")
        return 0
    wishes.leave_edit(found, aside, opened, typed)
    now = look()
    if now and now.loop and now.loop.id == loop.id and now.loop.run.is_over:  # nobody else takes it any more
        wishes.apply_edit(found, aside, {one.key for one in now.loop.ledger.done})
        tell(f"the loop has ended meanwhile: the queue is in {found.shown(LOGS, found.newest())}")
    else:
        _check(typed, "what you wrote", tell)
        tell("an agent is at work: this counts from the next item on")
    return 0


def _at_work(found: Found | None) -> LoopRun | None:
    """The loop whose agent is at an item now, or may be."""
    loop = found.loop if found else None
    if loop is None or loop.run.is_over or not loop.ledger.open:
        return None
    return loop


def _check(text: str, shown: str, tell: Callable[[str], None]) -> None:
    """Tell what a queue comes to, and what in it may not mean what its author thinks."""
    read = queue.read(text)
    if read.section is None:
        tell(f"warning: {shown} has no `## {queue.TITLE}`, so nothing is in the queue: raymond continuous-session edit")
        return
    for doubt in read.doubts:
        tell(f"warning: {shown}:{doubt.line}: {doubt.message}")
    tell(f"{many(len([one for one in read.items if not one.ticked]), 'item')} in the queue")


def learn(found: Documents, loop: Found | None, text: str) -> str:
    """Add a learning; while an agent works, it is added when that has ended. What was done, in words."""
    opening.check_folder(found, "learn TEXT")
    line = f"- {datetime.now(UTC).astimezone():%Y-%m-%d}: {one_line(text)}\n"
    at_work = _at_work(loop)
    wishes.learn(found, at_work.file(LEARNED) if at_work else "", line)
    if at_work:
        return f"an agent is at work: {found.shown(LEARNINGS)} gets this for the next item"
    return f"added to {found.shown(LEARNINGS)}"


def eject(workflow: str, folder: str) -> str:
    """Copy a workflow that ships, to be changed; what was done, in words."""
    if os.path.lexists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
        raise UsageError(f"{folder} already exists", hint="name a folder that does not exist")
    shutil.copytree(workflow, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    name = pasted.word(folder, "DIR")
    top = git.top(os.getcwd())
    is_inside = bool(top) and os.path.realpath(folder).startswith(f"{top}/")
    commit = f"git add {name} && git commit -m 'Workflow of the loop', and " if is_inside else ""
    return f"copied to {folder}: change it, then {commit}start with {pasted.flag('--workflow', folder, 'DIR')}"
