"""Submodules: how they stand, looked at with git directories of our own, so that nothing runs that an agent has set."""

import os

from raymond.digests import sha256
from raymond.loops.repository import Repository
from raymond.system import git
from raymond.verifier.private_git import PrivateGit


def states(repository: Repository, folder: str) -> dict[str, str]:
    """Path -> commit and files of every submodule; `folder` is where our own git directories are."""
    if not os.path.isfile(os.path.join(repository.top, ".gitmodules")):
        return {}
    return {path: _state(repository.top, path, folder) for path in repository.modules()}


def changed(repository: Repository, folder: str, before: dict[str, str]) -> list[str]:
    """The paths of those that are not as they were."""
    return [path for path, state in before.items() if _state(repository.top, path, folder) != state]


def _state(top: str, path: str, folder: str) -> str:
    whole = os.path.join(top, path)
    if os.path.islink(whole) or not os.path.lexists(os.path.join(whole, ".git")):
        return ""  # it is not checked out
    private = PrivateGit(os.path.join(folder, sha256(os.fsencode(path)).hexdigest()[:16]), whole)
    head = git.head(whole)
    private.prepare(head)
    return f"{head} {private.tree()}"
