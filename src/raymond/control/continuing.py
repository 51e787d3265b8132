"""Whether a run continues by itself, or is left to its owner."""

import os
from collections.abc import Iterator

from msgspec import Struct

from raymond.control import config, inside, left_requests, programs, runs
from raymond.errors import Error, NotContinued
from raymond.machine.run import Run
from raymond.store.project import Project
from raymond.views.status import run_status


def check(project: Project, run: Run) -> None:
    """Raise NotContinued when nobody but its owner may continue the run; whoever calls this holds its lock."""
    reason = why_not(project, run)
    if reason:
        left = left_requests.of(project, run)
        raise NotContinued(f"{reason}, so it was not continued", again=left.then if left.ends_run else "")


def why_not(project: Project, run: Run) -> str:
    """Why nobody but its owner may continue the run now; empty when nothing is in the way.

    Everything that is checked before a resume is checked after this, by whoever resumes it.
    """
    if run.is_over:
        return f"{run.start.workflow_id} has ended"
    if run.stop and not runs.was_shut_down(run):
        return f"{run.start.workflow_id} is {run_status(run)}"
    return left_requests.of(project, run).stop() or _difference(project, run)


def _difference(project: Project, run: Run) -> str:
    """What would answer its prompts now, if that is not what its last driver used."""
    return programs.difference(run, config.load(project.tree)["backends"]) if run.programs else ""


class LeftOut(Struct, frozen=True):
    """A run that nobody drives, and that is left to its owner."""

    id: str
    why: str
    then: str
    """What continues it, or ends it."""


def resumable(project: Project) -> Iterator[str | LeftOut | Error]:
    """The runs that were driven when the machine or their driver died, oldest first; what cannot be read, as error."""
    for id in reversed(project.ids()):
        try:
            seen = runs.look(project, id)
            if not runs.is_driven(project.run(id)) and not _belongs_to_step(seen.run):
                yield from _resumable(project, seen)
        except Error as error:
            yield error


def _resumable(project: Project, seen: runs.Seen) -> Iterator[str | LeftOut]:
    id = seen.run.start.workflow_id
    left = left_requests.of(project, seen.run)
    if seen.status == runs.ANSWERED:
        yield LeftOut(id, "it was answered and not continued", left.then)
    elif seen.status == runs.INTERRUPTED or runs.was_shut_down(seen.run):
        why = left.stop()
        if not why and os.path.isdir(project.tree):
            why = _difference(project, seen.run)
        yield LeftOut(id, why, left.then) if why else id


def _belongs_to_step(run: Run) -> bool:
    """Whether a step of another run waits for it: that step is repeated, and starts it again."""
    return bool(run.start.inside) and not run.start.apart


def by_step() -> bool:
    """Whether a step answers: it says itself when the run is to continue, which must not outlive it."""
    return bool(inside.starter().sender.steps)
