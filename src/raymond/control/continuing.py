"""Whether a run continues by itself, or is left to its owner."""

from raymond.control import config, inside, programs, runs
from raymond.errors import NotContinued
from raymond.machine.run import Run
from raymond.store.project import Project
from raymond.views.status import run_status


def check(project: Project, run: Run) -> None:
    """Raise NotContinued when nobody but its owner may continue the run; whoever calls this holds its lock."""
    reason = why_not(project, run)
    if reason:
        raise NotContinued(f"{reason}, so it was not continued")


def why_not(project: Project, run: Run) -> str:
    """Why nobody but its owner may continue the run now; empty when nothing is in the way.

    Everything that is checked before a resume is checked after this, by whoever resumes it.
    """
    if run.is_over:
        return f"{run.start.workflow_id} has ended"
    if run.stop and not runs.was_shut_down(run):
        return f"{run.start.workflow_id} is {run_status(run)}"
    return programs.difference(run, config.load(project.tree)["backends"]) if run.programs else ""


def by_step() -> bool:
    """Whether a step answers: it says itself when the run is to continue, which must not outlive it."""
    return bool(inside.starter().sender.steps)
