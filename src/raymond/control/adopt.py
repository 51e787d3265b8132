"""Adopt runs that an earlier release kept in the project. They may do what their journals say, so a person decides."""

import os
from collections.abc import Sequence

from msgspec import Struct

from raymond.control import runs
from raymond.errors import RunExists, RunNotFound
from raymond.machine.run import Run
from raymond.store import earlier
from raymond.store.exports import former_journal
from raymond.store.project import Project
from raymond.store.run_folder import RunFolder
from raymond.system import git


class Candidate(Struct, frozen=True, kw_only=True):
    """A run of an earlier release, copied and checked, and not yet one of this project."""

    project: Project
    kept_in: str
    """The directory whose `.raymond` holds it."""
    folder: RunFolder
    run: Run
    is_tracked: bool | None
    """Git tracks its journal: it came with the repository, or was committed. None when git cannot tell."""

    @property
    def status(self) -> str:
        """Its status now that nobody drives it."""
        return runs.left(self.run)


def waiting(project: Project) -> list[str]:
    """The runs of earlier releases that were not adopted."""
    return sorted(id for id in _kept(project) if not project.run(id).exists)


def _kept(project: Project) -> dict[str, str]:
    """Every run of an earlier release, with the directory that holds it: the project's, or this one."""
    return {id: tree for tree in (os.path.realpath("."), project.tree) for id in earlier.ids(tree)}


def untold(project: Project) -> list[str]:
    """The same, if their owner was not told of them; from now on they were."""
    about = project.about()
    if about and about.told:
        return []
    found = waiting(project)
    if found:
        project.note_told()
    return found


def choose(project: Project, ids: Sequence[str]) -> list[str]:
    """The runs that `ids` name; refused when there is none of that name."""
    there, kept = waiting(project), _kept(project)
    for id in ids:
        if id in kept and id not in there:
            hint = f"`raymond status {id}` shows it"
            raise RunExists(f"{project.tree} has a run `{id}` already", path=project.run(id).path, hint=hint)
        if id not in there:
            hint = f"there are: {', '.join(there[:5])}" if there else "`raymond list` shows the runs of this project"
            raise RunNotFound(f"no earlier release left a run `{id}` in {project.tree}/.raymond", hint=hint)
    return list(dict.fromkeys(ids))


def examine(project: Project, id: str) -> Candidate:
    """Copy a run aside and check it; `accept` or `discard` it then."""
    tree = _kept(project)[id]
    folder, run = earlier.copy(project, tree, id)
    return Candidate(project=project, kept_in=tree, folder=folder, run=run, is_tracked=_is_tracked(project, tree, id))


def _is_tracked(project: Project, tree: str, id: str) -> bool | None:
    path = former_journal(tree, id)
    top = git.top(os.path.dirname(path))
    if top and top != project.tree:
        return True  # a repository of its own in there was brought along as well
    return git.is_tracked(project.tree, path) if top or git.holds(project.tree) else False


def accept(candidate: Candidate) -> None:
    """Make it a run of this project."""
    earlier.accept(candidate.project, candidate.kept_in, candidate.folder)
    if candidate.is_tracked is False:
        earlier.put_away(candidate.kept_in, candidate.folder.id)


def discard(candidate: Candidate) -> None:
    """Leave it where it is."""
    earlier.discard(candidate.folder)
