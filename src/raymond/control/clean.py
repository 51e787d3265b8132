"""Remove finished runs, and what no other run needs."""

import os
from collections.abc import Iterator, Sequence
from time import time as now

from raymond.control import inside, naming, runs
from raymond.control.handle import RunHandle
from raymond.errors import JournalError, UsageError
from raymond.machine.run import Run
from raymond.store import clean, lock
from raymond.store.leftovers import Leftovers
from raymond.store.project import Project


def removable(ids: Sequence[str], keep: float) -> list[RunHandle | UsageError]:
    """The runs that `ids` name, or all here that ended more than `keep` seconds ago; why one is not removed."""
    if not ids:
        inside.check_person("clean")
        home, before = runs.here(), now() - keep
        return [RunHandle(home, id) for id in home.ids() if _ended_before(home, id, before)]
    named = dict.fromkeys(naming.named(id, changes=True, verb="clean") for id in ids)
    for project, id in named:
        inside.check(runs.look(project, id).run.start, "clean")
    return [_checked(project, id) for project, id in named]


def _checked(project: Project, id: str) -> RunHandle | UsageError:
    if _finished(project, id) is not None or _is_lost(project, id):
        return RunHandle(project, id)
    holder = lock.holder(project.run(id))
    if isinstance(holder, lock.Squatter):
        return UsageError(holder.told(id), hint=holder.way_out(id))
    force = " --force" if runs.look(project, id).host else ""
    hint = f"unfinished runs are never removed: raymond cancel {id}{force} ends it for good"
    return UsageError(f"{id} is not finished", hint=hint)


def remove(run: RunHandle) -> None:
    """Remove a run; an unfinished one that another host may still drive is refused."""
    read, folder = run.read(), run.project.run(run.id)
    # A driver that leaves ends what is left running, then removes the spool: looking again takes milliseconds a run.
    is_left = os.path.exists(folder.spool) or os.path.exists(folder.cgroups)
    left = Leftovers(folder, read.start) if is_left else None
    clean.remove_run(run.project, run.id, left, finished=bool(read.final_status))


def unused(project: Project, *, dry_run: bool) -> Iterator[str | JournalError]:
    """Remove what no run needs any more, if this is no dry run; the paths, and an error for each that cannot go."""
    return clean.unused(project) if dry_run else clean.remove_unused(project)


def _finished(project: Project, id: str) -> Run | None:
    run = runs.look(project, id).run
    return run if run.final_status and lock.holder(project.run(id)) is None else None


def _is_lost(project: Project, id: str) -> bool:
    """Whether nobody drives it and nothing is left of the directory it could continue in."""
    gone = not os.path.exists(runs.look(project, id).run.start.cwd)
    return gone and lock.holder(project.run(id)) is None


def _ended_before(project: Project, id: str, before: float) -> bool:
    try:
        run = _finished(project, id)
    except JournalError:
        return False  # one that cannot be read may still be repaired
    return run is not None and run.now < before
