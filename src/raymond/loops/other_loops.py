"""The loops in other worktrees, by their runs: a branch can be called like one of theirs by anybody."""

import os

from raymond.errors import JournalError
from raymond.store import journal
from raymond.store import project as projects
from raymond.store.run_folder import RunFolder

LOCK = "loop.lock"
"""In the folder of a project: made when a loop starts there for the first time."""


def is_in(tree: str, since: float) -> bool:
    """Whether a loop has begun in a worktree since then, or gone on there."""
    project = projects.at(tree)
    if project.tree != os.path.realpath(tree):
        return False
    if _changed(os.path.join(project.root, LOCK)) >= since:
        return True  # it is about to begin
    folders = (project.run(id) for id in project.ids())
    return any(_changed(one.journal) >= since and _is_loop(one) for one in folders)


def _is_loop(folder: RunFolder) -> bool:
    try:
        return bool(journal.first(folder).loop)
    except JournalError:
        return False


def _changed(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return 0.0
