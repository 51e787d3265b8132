"""Other runs that work in the same directory: their agents change the same files."""

import os
from collections.abc import Iterator

from raymond.control import runs
from raymond.errors import JournalError
from raymond.machine.events import RunStarted
from raymond.store import journal
from raymond.store.project import Project


def of(project: Project, start: RunStarted) -> list[str]:
    """The runs that a process drives in the directory of the run that began with `start`, above it or below it.

    Runs that steps start share the directory of their outer run on purpose.
    """
    if start.inside:
        return []
    return [id for id, other in _driven(project, start.workflow_id) if _overlaps(start.cwd, other.cwd)]


def _driven(project: Project, but: str) -> Iterator[tuple[str, RunStarted]]:
    for id in project.ids():
        folder = project.run(id)
        # Whoever leaves a run removes this file: most runs need no look at their lock.
        if id == but or not os.path.exists(folder.driver) or not runs.is_driven(folder):
            continue
        try:
            other = journal.first(folder)
        except JournalError:
            continue
        if not other.inside:
            yield id, other


def _overlaps(one: str, other: str) -> bool:
    first, second = f"{one.rstrip('/')}/", f"{other.rstrip('/')}/"
    return first.startswith(second) or second.startswith(first)
