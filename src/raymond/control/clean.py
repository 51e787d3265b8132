"""Remove finished runs, and what no other run needs."""

from collections.abc import Iterator, Sequence
from time import time as now

from raymond.control import runs
from raymond.errors import JournalError, UsageError
from raymond.machine.run import Run
from raymond.store import clean, lock
from raymond.store.project import Project


def removable(project: Project, ids: Sequence[str], keep: float) -> list[str]:
    """The runs that `ids` name, or all that ended more than `keep` seconds ago; an unfinished one is refused."""
    named = [project.resolve(id) for id in ids]
    for id in named:
        if _finished(project, id) is None:
            raise UsageError(f"{id} is not finished", hint=f"raymond stop {id}; unfinished runs are never removed")
    return list(dict.fromkeys(named)) or [id for id in project.ids() if _ended_before(project, id, now() - keep)]


def remove(project: Project, ids: Sequence[str]) -> Iterator[str]:
    """Remove these runs; yields each id once it is gone."""
    for id in ids:
        clean.remove_run(project, id)
        yield id


def remove_unused(project: Project) -> int:
    """Remove what no remaining run needs; returns the number of workflow snapshots removed."""
    return clean.remove_unused(project)


def _finished(project: Project, id: str) -> Run | None:
    run = runs.look(project, id).run
    return run if run.final_status and lock.holder(project.beside(id, "lock")) is None else None


def _ended_before(project: Project, id: str, before: float) -> bool:
    try:
        run = _finished(project, id)
    except JournalError:
        return False  # one that cannot be read may still be repaired
    return run is not None and run.now < before
