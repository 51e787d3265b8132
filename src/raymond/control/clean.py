"""Remove finished runs, and what no other run needs."""

import os
from collections.abc import Iterator, Sequence
from time import monotonic, sleep
from time import time as now

from raymond.control import inside, naming, runs
from raymond.control.handle import RunHandle
from raymond.errors import JournalError, OtherFormat, RunBusy, UsageError, WorkspaceError
from raymond.language.refusal import Refusal
from raymond.machine.run import Run
from raymond.store import clean, lock
from raymond.store.leftovers import Leftovers
from raymond.store.project import Project

_ENDED_WITHIN = 60.0
"""Seconds to wait for the process that drives a run to end it."""


def old(project: Project, keep: float) -> list[RunHandle]:
    """The runs of a project that ended more than `keep` seconds ago."""
    inside.check_person("clean")
    before = now() - keep
    return [RunHandle(project, id) for id in project.ids() if _ended_before(project, id, before)]


def named(ids: Sequence[str], *, force: bool = False) -> list[RunHandle | UsageError]:
    """The runs that `ids` name, finished or not with `force`; why one is not removed."""
    found = dict.fromkeys(naming.named(id, changes=True, verb="clean") for id in ids)
    for project, id in found:
        _check_allowed(project, id, force=force)
    return [RunHandle(project, id) if force else _checked(project, id) for project, id in found]


def _check_allowed(project: Project, id: str, *, force: bool) -> None:
    try:
        start = runs.look(project, id).run.start
    except OtherFormat:
        if not force:
            raise
        inside.check_person("clean")  # nobody can tell which step began it
    else:
        inside.check(start, "clean")


def cancel(run: RunHandle) -> None:
    """End a run for good so that it can be removed; nothing when it has ended.

    A full disk may have no room for that in its journal, which need not be there: it goes with the run.
    """
    from raymond.control import request
    from raymond.control.request import Left

    try:
        if _finished(run.project, run.id) is not None or _is_lost(run.project, run.id):
            return
    except OtherFormat:
        return  # nothing can be written to its journal
    try:
        done = request.cancel(run.project, run.id)
    except RunBusy:
        raise
    except JournalError:
        return  # whoever drives it now holds its lock, and is in the way of its removal
    if isinstance(done, Refusal) and done.kind != "run_ended":
        raise UsageError(done.reason, hint=done.hint)
    if isinstance(done, Left) and done.host:
        hint = f"if {done.host} is gone: raymond cancel {run.id} --force, then the same again"
        raise UsageError(f"{run.id} may be running on {done.host}", hint=hint)
    until = monotonic() + _ENDED_WITHIN
    while lock.holder(run.project.run(run.id)) is not None:
        if monotonic() > until:
            raise UsageError(f"{run.id} is cancelled, and its steps are still ending", hint="try again in a moment")
        sleep(0.02)


def _checked(project: Project, id: str) -> RunHandle | UsageError:
    if _finished(project, id) is not None or _is_lost(project, id):
        return RunHandle(project, id)
    holder = lock.holder(project.run(id))
    if isinstance(holder, lock.ForeignHolder):
        return UsageError(holder.told(id), hint=holder.way_out(id))
    force = " --force" if runs.look(project, id).host else ""
    hint = f"raymond cancel {id}{force} ends it for good; raymond clean --force {id} ends and removes it"
    return UsageError(f"{id} is not finished", hint=hint)


def remove(run: RunHandle, *, force: bool = False) -> None:
    """Remove a run; an unfinished one that another host may still drive is refused.

    With `force` also one that has the only copy of files whose tree is gone, and one of another format: what its steps
    left running cannot be told then.
    """
    folder = run.project.run(run.id)

    def first() -> None:
        _save_work(run.project, run.id, force=force)

    try:
        read = run.read()
    except OtherFormat:
        if not force:
            raise
        clean.remove_run(run.project, run.id, finished=False, first=first)
        return
    # A driver that leaves ends what is left running, then removes the spool: looking again takes milliseconds a run.
    is_left = not read.final_status or os.path.exists(folder.spool) or os.path.exists(folder.cgroups)
    left = Leftovers(folder, read.start) if is_left else None
    clean.remove_run(run.project, run.id, left, finished=bool(read.final_status), first=first)


def _save_work(project: Project, id: str, *, force: bool) -> None:
    """What agents did in a workspace stays under a reference of the repository."""
    if not os.path.exists(project.run(id).workspace):
        return
    from raymond.control import workspaces

    place = workspaces.at(project, RunHandle(project, id).start)
    if not place.is_there or (force and not os.path.isdir(project.tree)):
        return
    try:
        _, left_out = workspaces.save(place)
    except (WorkspaceError, OSError) as error:
        hint = f"raymond clean --force {id} removes it all the same" if not os.path.isdir(project.tree) else ""
        raise JournalError(f"{id} stays: the work in its workspace cannot be saved: {error}", hint=hint) from None
    if left_out and not force:
        path, why = left_out[0]
        more = f" and {len(left_out) - 1} more" if len(left_out) > 1 else ""
        hint = f"copy what you need from {place.slot.tree}, then raymond clean --force {id}"
        raise JournalError(f"{id} stays: {path}{more} in its workspace is nowhere else ({why})", hint=hint)
    if place.slot.is_apart:
        place.drop()  # any other tree goes with the folder of the run


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
