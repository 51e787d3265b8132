"""Submodules: how they stand, looked at with git directories of our own, so that nothing runs that an agent has set."""

import os

from raymond.digests import sha256
from raymond.loops.hooks import hooks_in
from raymond.loops.repository import Repository
from raymond.system import files, git
from raymond.verifier.private_git import PrivateGit

_SETTINGS = ("config", "info/attributes", "info/exclude")
_LARGEST = 1 << 20


def states(repository: Repository, folder: str) -> dict[str, str]:
    """Path -> commit, files and settings of every submodule; `folder` is where our own git directories are."""
    if not os.path.isfile(os.path.join(repository.top, ".gitmodules")):
        return {}
    return {path: _state(repository.top, path, folder) for path in repository.modules()}


def changed(repository: Repository, folder: str, before: dict[str, str]) -> list[str]:
    """The paths of those that are not as they were."""
    return [path for path, state in before.items() if state != _state(repository.top, path, folder)]


def _state(top: str, path: str, folder: str) -> str:
    whole = os.path.join(top, path)
    if os.path.islink(whole) or not os.path.lexists(os.path.join(whole, ".git")):
        return ""  # it is not checked out
    private = PrivateGit(os.path.join(folder, sha256(os.fsencode(path)).hexdigest()[:16]), whole)
    head = git.head(whole)
    private.prepare(head)
    return f"{head} {private.tree()} {_settings(whole)}"


def _settings(whole: str) -> str:
    """A digest of what decides what git does there, also when a person calls it."""
    own, common = git.directories(whole)
    found = sha256(hooks_in(os.path.join(common, "hooks")).encode())
    for path in (os.path.join(own, "config.worktree"), *(os.path.join(common, name) for name in _SETTINGS)):
        try:
            found.update(sha256(files.contents(path, _LARGEST)).hexdigest().encode())
        except OSError as error:
            found.update(b"%d " % (error.errno or 0))
    return found.hexdigest()
