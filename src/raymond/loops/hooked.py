"""What a hook of the project did to documents of the loop: it may be a file that the agent has edited."""

import os
from typing import TYPE_CHECKING

from raymond.loops.inspection import Inspection

if TYPE_CHECKING:
    from raymond.loops.work import Work


def put_back(work: "Work", name: str, wanted: str, head: str) -> list[str]:
    """Give the documents of the loop what they have in the tree `wanted`, and keep what they had; what to tell."""
    repository, own = work.step.repository, work.step.documents
    left = repository.tree()
    changed = [one.path for one in repository.changes(wanted, left) if own.owns(one.path)]
    if not changed:
        return []
    work.keep_documents(Inspection(left=left, head=head))
    repository.bring_back(wanted, changed)
    shown = [os.path.relpath(path, os.path.relpath(own.cwd, own.top)) for path in changed]
    return [f'"{path}" was changed by the hook {name}, or while it ran, and was put back' for path in shown]
