"""Names that can be given to a command: of runs, agents, states, backends, workflows."""

import os
from collections.abc import Iterator

from raymond.control import naming, questions, runs
from raymond.control.runs import RunRow
from raymond.store import project as projects
from raymond.store import workflow_snapshot

_FIRST = ("START.", "1_START.")
_WHERE = (".", "workflows")
"""Where workflows are looked for."""


def ids(verb: str, begins: str = "") -> list[RunRow]:
    """The runs that `verb` can act on: those here, and where there is none, or none that begins so, those elsewhere."""
    here = runs.here()
    found = naming.actable(_rows(here, begins), verb)
    others = projects.known(here.home) if not found else []
    return found or naming.actable([row for one in others if one != here for row in _rows(one, begins)], verb)


def _rows(project: projects.Project, begins: str) -> list[RunRow]:
    return [runs.row(project, id) for id in project.ids() if id.startswith(begins)]


def agents(id: str | None, *, asking: bool = False, ended: bool = False) -> list[tuple[str, str]]:
    """The agents of a run that have not ended, what each does, and its label.

    With `asking`, those that wait for an answer; with `ended`, also those that have ended.
    """
    project, found = naming.named(id or None)
    if asking:
        return [(one.question.agent, one.question.label or "asking") for one in questions.of_run(project, found).asked]
    run = runs.look(project, found).run
    living = [(one.id, _about(one.status, one.label)) for one in run.agents.values()]
    past = [one for one in run.outcomes.values() if ended and one.agent not in run.agents]
    return [*living, *((one.agent, _about(one.status, one.label)) for one in past)]


def _about(status: str, label: str) -> str:
    return f"{status} ({label})" if label else status


def states(id: str | None) -> list[str]:
    """The states of the workflow of a run."""
    project, found = naming.named(id or None)
    return [*workflow_snapshot.placed_workflow(project, runs.look(project, found).run).workflow.states]


def backends() -> list[str]:
    """Those that there are, built in and of one's own."""
    from raymond.backends import registry
    from raymond.control import config

    return [*registry.names(config.load(runs.here().tree)["backends"])]


def workflows() -> Iterator[str]:
    """Folders here, and in `workflows`, that begin like a workflow."""
    for where in _WHERE:
        try:
            inside = sorted(os.scandir(where), key=lambda one: one.name)
        except OSError:
            continue
        for one in inside:
            if one.is_dir() and _is_workflow(one.path):
                yield os.path.normpath(one.path)


def _is_workflow(path: str) -> bool:
    try:
        return any(name.startswith(_FIRST) for name in os.listdir(path))
    except OSError:
        return False
