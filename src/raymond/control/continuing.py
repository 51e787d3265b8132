"""Whether a run that was answered is continued by itself, or left to its owner."""

from raymond.control import config, inside, programs, runs
from raymond.store.project import Project
from raymond.views.status import run_status


def why_not(project: Project, id: str) -> str:
    """Why nobody but its owner may continue the run now; empty when nothing is in the way.

    Everything that is checked before a resume is checked after this, by whoever resumes it.
    """
    run = runs.look(project, id).run
    if run.stop and run.stop.kind in ("stop", "limit"):
        return f"{id} is {run_status(run)}"
    return programs.difference(run, config.load(project.tree)["backends"]) if run.programs else ""


def by_step() -> bool:
    """Whether a step answers: it says itself when the run is to continue, which must not outlive it."""
    return bool(inside.starter().sender.steps)
