"""Finding loops: those that have not ended, the last one with some documents, and what a state file tells of.

A loop belongs to one folder of documents: a repository may have several, each with a plan of its own.
"""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from msgspec import Struct

from raymond import pasted
from raymond.control import runs
from raymond.control.handle import RunHandle
from raymond.errors import JournalError, UsageError
from raymond.loops import documents, ending
from raymond.loops.branch import BASE, OWN, VOUCHED
from raymond.loops.documents import FAILURES, PROGRESS, Documents
from raymond.loops.formats import state_file
from raymond.loops.loop_run import LoopRun
from raymond.loops.settings import RALPH
from raymond.store.project import Project
from raymond.system import git
from raymond.workspace import publish

# Where it begins


class Earlier(Struct, frozen=True):
    """The branch of a loop that has ended."""

    id: str
    name: str
    """Where a person finds its tip."""
    tip: str
    base: str
    vouched: str
    own: str
    records: tuple[str, ...]
    """Its documents in which entries are only added."""


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


def open_loops(project: Project, loop: str = "", found: Documents | None = None) -> Iterator[LoopRun]:
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
    return os.path.realpath(loop.checkout.folder) == os.path.realpath(found.folder)


def command(loop: LoopRun, verb: str) -> str:
    """A command for this loop, as it is typed here."""
    here, there = os.path.realpath(os.getcwd()), os.path.realpath(loop.checkout.cwd)
    where = "" if here == there else f"{pasted.flag('-C', os.path.relpath(there, here), 'DIR')} "
    return f"raymond {where}{loop.loop} {verb}{loop.docs_flag}"


class Found(Struct, frozen=True):
    """A loop that a state file tells of."""

    checkout: Documents
    status: str
    session: int
    most: int
    state: dict[str, Any]
    loop: LoopRun | None
    """None when its journal is not here."""
    is_driven: bool = False
    is_unconcluded: bool = False
    """Its run has ended, and the state file does not say so yet."""
    is_elsewhere: bool = False
    """Its process may run on another host."""


def look(project: Project, found: Documents, loop: str) -> Found | None:
    """The loop that the state file of this directory tells of, or the journal alone; a broken file is kept aside."""
    path = found.state(loop)
    try:
        text = documents.beginning(path)
        given = state_file.read(text) if text else {}
    except state_file.Broken:
        os.replace(path, f"{path}.broken")
        given = {}
    there = _named(project, found, str(given.get("workflow_id") or "")) if given else None
    if not given.get("workflow_id"):
        there = next(open_loops(project, loop, found), None)
    if not given and not there and not os.path.isdir(found.folder):  # the plain loop works without it
        there = last(project, found, loop)
    if not given and there is None:
        return None
    status = str(given.get("status") or "running")
    if there and there.run.is_over:
        status = ending.status_of(there)
    elif there and there.is_stopping and status == "running":  # no state file says so where there is no folder docs
        status = "stopping"
    elif there and not given and runs.undriven_status(there.run) != runs.INTERRUPTED:
        status = "paused"
    host = given.get("host")
    return Found(
        checkout=found,
        status=status,
        session=_first(given, "currentSession", "currentIteration") or (there.ledger.sessions if there else 0),
        most=_first(given, "maxSessions", "maxIterations", "maxStories") or (there.settings.most if there else 0),
        state=given,
        loop=there,
        is_driven=there is not None and runs.is_driven(project.run(there.id)),
        is_unconcluded=there is not None and there.run.is_over and given.get("status") in ("running", "stopping"),
        is_elsewhere=there is None and bool(host) and host != os.uname().nodename,
    )


def shown(loop: LoopRun) -> Found:
    """A loop as `status` shows it, whether or not a state file tells of it."""
    is_driven = runs.is_driven(loop.project.run(loop.id))
    status, most = ending.status_of(loop), loop.settings.most
    return Found(loop.checkout, status, loop.ledger.sessions, most, {}, loop, is_driven=is_driven)


def own(found: Found | None) -> str:
    """The id of the loop that was found and can go on; empty when there is none."""
    return found.loop.id if found and found.loop else ""


def _first(given: dict[str, Any], *names: str) -> int:
    """The first of these numbers that a state file has."""
    value = next((given[name] for name in names if name in given), 0)
    return value if isinstance(value, int) else 0


def _named(project: Project, found: Documents, id: str) -> LoopRun | None:
    """The loop that a state file names, if it works here: a copy of the folder has a copy of the file."""
    there = run(project, id)
    return there if there and is_of(there, found) else None


def last(project: Project, found: Documents, loop: str) -> LoopRun | None:
    """The last such loop with these documents, whether it has ended or not."""
    known = (run(project, id) for id in ids(project, loop))
    return next((one for one in known if one and is_of(one, found)), None)


def every(project: Project, loop: str, most: int) -> Iterator[LoopRun]:
    """The last runs of this project that are such a loop."""
    for id in islice(ids(project, loop), most):
        if there := run(project, id):
            yield there


def archive(found: Documents, loop: str) -> str:
    """Put the state file of a loop aside, with the time; its new name."""
    path = found.state(loop)
    if not os.path.lexists(path):
        return ""
    base = f"{path}.{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    name, number = base, 1
    while os.path.lexists(name):
        number += 1
        name = f"{base}_{number}"
    os.replace(path, name)
    return os.path.basename(name)


def beside(project: Project, found: Documents, loop: str, shown: str = "") -> Iterator[str]:
    """A line for each that has not ended and is not `shown`, with the command that shows it."""
    for one in open_loops(project, loop):
        if is_of(one, found) and one.id != shown:
            yield f"{loop} {one.id} has not ended: raymond status {one.id}"
        elif not is_of(one, found):
            folder = os.path.relpath(os.path.realpath(one.checkout.folder), os.path.realpath(found.cwd))
            yield f"{loop} {one.id} is in {pasted.name(folder)}: {command(one, 'status')}"


def unmerged(project: Project, found: Documents, loop: str, prompt: str = "") -> LoopRun | None:
    """The newest loop with these documents, if its branch has something that the checkout has not.

    A loop over items continues what any of them did; the plain loop continues that of the same prompt.
    """
    head = git.head(found.top)
    for id in ids(project, RALPH if loop == RALPH else ""):
        there = run(project, id)
        if there is None or not is_of(there, found) or not there.has_branch:
            continue
        if (there.loop == RALPH) != (loop == RALPH) or (prompt and there.settings.prompt != prompt):
            continue
        return None if publish.contains(found.top, head, there.branch.tip) else there
    return None


def earlier(loop: LoopRun) -> Earlier:
    """The same as what another loop can begin with; commits of a person's on top of its branch are a part of it."""
    branch = loop.branch
    tip, there = branch.tip, git.reference(loop.top, f"refs/heads/{branch.name}") if branch.name else ""
    if there and publish.contains(loop.top, there, tip):
        if loop.settings.internal and there != tip:
            what = f"{branch.name} has commits that {loop.id} did not make, and its agents had your rights"
            hint = f"git log {tip[:12]}..{branch.name} shows them; --from REF begins without them"
            raise UsageError(what, hint=hint)
        tip = there
    records = tuple(loop.checkout.inside_path(name) for name in (PROGRESS, FAILURES))
    return Earlier(
        loop.id, branch.shown, tip, branch.commit_of(BASE), branch.commit_of(VOUCHED), branch.commit_of(OWN), records
    )


def for_person(project: Project, found: Documents, loop: str) -> LoopRun | None:
    """The loop whose documents count now: one that has not ended, or the newest that is not merged."""
    for there in open_loops(project, loop, found):
        if there.has_branch:
            return there
    return unmerged(project, found, loop)
