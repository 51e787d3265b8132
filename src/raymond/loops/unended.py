"""The loops of a checkout that have not ended, by their journals, and the commands for each of them.

A loop belongs to one folder of documents: a repository may have several, each with a plan of its own.
"""

import os
from collections.abc import Iterator

from raymond import pasted
from raymond.control import runs
from raymond.control.handle import RunHandle
from raymond.errors import JournalError
from raymond.loops.documents import Documents
from raymond.loops.loop_run import LoopRun
from raymond.store.project import Project

_DOCS = "docs"
"""The folder of documents where nobody names another one."""


def ids(project: Project, loop: str = "") -> Iterator[str]:
    """The runs of this project that are loops, or loops of one kind, the latest first."""
    for id in project.ids():
        if is_loop(project, id, loop):
            yield id


def is_loop(project: Project, id: str, loop: str = "") -> bool:
    """Whether a run is a loop, or one of this kind."""
    try:
        kind = RunHandle(project, id).start.loop
    except JournalError:
        return False
    return bool(kind) and loop in ("", kind)


def run(project: Project, id: str) -> LoopRun | None:
    """A loop by its id; None when its journal is not here, or cannot be read."""
    folder = project.run(id) if id.replace("-", "").replace("_", "").isalnum() else None
    if folder is None or not folder.exists:
        return None
    try:
        return LoopRun(project, RunHandle(project, id).read())
    except JournalError:
        return None


def every(project: Project, loop: str = "", found: Documents | None = None) -> Iterator[LoopRun]:
    """Those that have not ended: all of them, or one kind, or those of one folder.

    Of a run that has ended, no more than that is read: there may be hundreds.
    """
    for id in project.ids():
        if runs.has_ended(project.run(id)) or not is_loop(project, id, loop):
            continue
        there = run(project, id)
        if there and not there.run.is_over and (found is None or is_of(there, found)):
            yield there


def is_of(loop: LoopRun, found: Documents) -> bool:
    """Whether a loop works with this folder of documents."""
    return os.path.realpath(loop.documents.folder) == os.path.realpath(found.folder)


def command(loop: LoopRun, verb: str) -> str:
    """A command for this loop, as it is typed here."""
    here, there = os.path.realpath(os.getcwd()), os.path.realpath(loop.documents.cwd)
    where = "" if here == there else f"{pasted.flag('-C', os.path.relpath(there, here), 'DIR')} "
    return f"raymond {where}{loop.loop} {verb}{flag_of(loop)}"


def flag_of(loop: LoopRun) -> str:
    """The flag that names its folder, after a blank; empty where nobody needs it."""
    docs = os.path.normpath(loop.documents.docs)
    return "" if docs == _DOCS else f" {pasted.flag('--docs', docs, 'DIR')}"
