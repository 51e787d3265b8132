"""What a hook of the project did to documents of the loop: it may be a file that the agent has edited."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from raymond.loops.git_calls import GitError
from raymond.loops.inspection import Inspection
from raymond.loops.step import told

if TYPE_CHECKING:
    from raymond.loops.work import Work


class Stuck(GitError):
    """Documents that could not be put back."""

    def __init__(self, name: str, paths: Sequence[str], error: Exception) -> None:
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        what = f"{paths[0]}{more}, changed by the hook {name} or while it ran, cannot be put back"
        super().__init__(f"{what}: {told(error)}")
        self.lasts = getattr(error, "lasts", False)


def put_back(work: "Work", name: str, wanted: str, head: str) -> list[str]:
    """Give the documents of the loop what they have in the tree `wanted`, and keep what they had; what to tell."""
    repository, own = work.step.repository, work.step.documents
    left = repository.tree()
    changed = [one.path for one in repository.changes(wanted, left) if own.owns(one.path)]
    if not changed:
        return []
    shown = [os.path.relpath(path, os.path.relpath(own.cwd, own.top)) for path in changed]
    try:
        work.keep_documents(Inspection(left=left, head=head))
        repository.bring_back(wanted, changed)
    except (GitError, OSError) as error:
        raise Stuck(name, shown, error) from None
    return [f'"{path}" was changed by the hook {name}, or while it ran, and was put back' for path in shown]
