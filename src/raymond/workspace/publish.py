"""Publish: put work under a reference of the person's repository, or into the person's checkout."""

import contextlib
import os

from raymond.system import git
from raymond.workspace.repository import Repository, call

_SETTINGS = "core.hooksPath=/dev/null core.fsync=committed,loose-object core.logAllRefUpdates=false gc.auto=0"
_QUIET = tuple(word for one in _SETTINGS.split() for word in ("-c", one))


def hold(repository: Repository, top: str, reference: str, commit: str, known: str) -> None:
    """Let `reference` of the repository at `top` name `commit`, whose objects are copied; `known` is there already."""
    if commit != known:
        given = f"{commit}\n^{known}\n".encode()
        packed = repository.ask("pack-objects", "--revs", "--stdout", "-q", "--thin", given=given)
        _theirs(top, "unpack-objects", "-q", given=packed)
    with contextlib.suppress(FileNotFoundError):
        # Nothing else moves this reference while we have the tree alone: a git that was killed has left the lock.
        os.unlink(f"{git.directories(top)[1]}/{reference}.lock")
    _theirs(top, "update-ref", "--no-deref", reference, commit)


def drop(top: str, reference: str) -> None:
    """Remove a reference."""
    _theirs(top, "update-ref", "--no-deref", "-d", reference)


def held(top: str, reference: str) -> list[str]:
    """The commit that a reference names; none when there is no such reference."""
    return _theirs(top, "for-each-ref", "--count=1", "--format=%(objectname)", reference).decode("ascii").split()


def _theirs(top: str, *args: str, given: bytes = b"") -> bytes:
    """Ask the git of the person's repository; nothing of its settings is run."""
    own = git.directories(top)[0]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env = {**kept, "GIT_DIR": own, "GIT_NO_REPLACE_OBJECTS": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    return call(["git", *_QUIET, *args], top, env, given)
