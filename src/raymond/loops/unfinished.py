"""What somebody has begun with git and not ended: whoever aborts it later goes back to where it began."""

import contextlib
import os
import shutil
from collections.abc import Iterable

from raymond.loops.repository import Repository
from raymond.system import git

_WORDS = {
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase or `git am`",
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "sequencer": "a row of cherry-picks or reverts",
    "BISECT_LOG": "a bisection",
}
"""What git keeps in its directory meanwhile."""
_QUITS = {
    "rebase-merge": ("rebase",),
    "rebase-apply": ("rebase", "am"),
    "MERGE_HEAD": ("merge",),
    "CHERRY_PICK_HEAD": ("cherry-pick",),
    "REVERT_HEAD": ("revert",),
    "sequencer": ("cherry-pick", "revert"),
}
"""The commands that forget it with `--quit`, and leave HEAD, the index and the files as they are."""
_BISECTION = "BISECT_"


def there(repository: Repository) -> list[str]:
    """What is unfinished here, as git names it in its directory."""
    folder = git.directories(repository.top)[0]
    return [name for name in _WORDS if os.path.lexists(os.path.join(folder, name))]


def words(names: Iterable[str]) -> str:
    """The first of them as people say it: `a merge`; empty when there is none."""
    return next((_WORDS[name] for name in names), "")


def end(repository: Repository, names: Iterable[str]) -> bool:
    """Let git forget these; what it had put away before it began is in the list of stashes then. Whether they are gone.

    A link is removed first: git would remove what is behind it.
    """
    folder = git.directories(repository.top)[0]
    paths = {name: os.path.join(folder, name) for name in names}
    for path in paths.values():
        if os.path.islink(path):
            os.unlink(path)
    for name, path in paths.items():
        for command in _QUITS.get(name, ()):
            if os.path.lexists(path):
                repository.run(command, "--quit")
        if name.startswith(_BISECTION):
            _end_bisection(repository, folder)
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.unlink(path)
    return not any(map(os.path.lexists, paths.values()))


def _end_bisection(repository: Repository, folder: str) -> None:
    """Without the command of git, which checks out another commit."""
    repository.drop_all("refs/bisect")
    for name in os.listdir(folder):
        if name.startswith(_BISECTION):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, name))
