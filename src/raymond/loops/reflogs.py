"""Reflogs: what git notes whenever a reference moves, read from its files."""

import os

from raymond.system import files, git

_PUSHED = b"\tupdate by push"
_LONGEST = 1 << 20
"""Bytes of one line, beyond which nothing more is read."""


def lengths(top: str) -> dict[str, int]:
    """Every reflog by the name of its reference, and how many bytes it has; HEAD is that of this work tree."""
    folder, common = git.directories(top)
    logs, found = os.path.join(common, "logs"), {}
    for where, _, names in os.walk(os.path.join(logs, "refs")):
        for path in (os.path.join(where, name) for name in names):
            found[os.path.relpath(path, logs)] = _length(path)
    return {**found, "HEAD": _length(os.path.join(folder, "logs", "HEAD"))}


def _length(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def is_pushed(top: str, name: str, length: int, commit: str) -> bool:
    """Whether a push has moved a branch of a remote since its reflog was so long, and named `commit`.

    Where the reflog is shorter now, only what follows that commit counts.
    """
    path = os.path.join(git.directories(top)[1], "logs", name)
    is_longer = _length(path) >= length
    try:
        lines = files.lines(path, _LONGEST, length if is_longer else 0).split(b"\n")
    except OSError:
        return False
    if not is_longer:
        known = [at for at, line in enumerate(lines) if line.split(b" ")[1:2] == [commit.encode()]]
        lines = lines[known[-1] + 1 :] if known else lines
    return any(line.endswith(_PUSHED) for line in lines)
