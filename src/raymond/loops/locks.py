"""Locks of git: one that was killed leaves its own behind, and nothing can be written there until it is removed."""

import contextlib
import os
import time
from collections.abc import Iterable

_OWN = ("index.lock", "HEAD.lock")
_SHARED = ("packed-refs.lock", "config.lock")
_STAYS = 1.0
"""Seconds after which a lock that is still the same is nobody's: git holds one for an instant."""


def there(folder: str, common: str) -> list[str]:
    """The locks in a git directory, and in the one that it shares with other worktrees."""
    found = [os.path.join(folder, name) for name in _OWN] + [os.path.join(common, name) for name in _SHARED]
    found = [path for path in found if os.path.lexists(path)]
    top = os.path.join(common, "refs")
    for where, folders, names in os.walk(top) if not os.path.islink(top) else ():
        found += [os.path.join(where, name) for name in sorted([*folders, *names]) if name.endswith(".lock")]
    return found


def removed(paths: Iterable[str], trees: Iterable[str]) -> list[str]:
    """Remove locks that were left behind, unless a git may be at work in one of the work trees; those that are gone."""
    before = {path: _which(path) for path in paths}
    if not before or _works_in(list(trees)):
        return []
    time.sleep(_STAYS)
    left = [path for path, which in before.items() if _which(path) == which]
    for path in left:
        with contextlib.suppress(OSError):
            _remove(path)
    return [path for path in before if not os.path.lexists(path)]


def _remove(path: str) -> None:
    """Remove a file, or a folder in its place, of which git cannot make a lock either."""
    if os.path.isdir(path) and not os.path.islink(path):
        import shutil  # git makes none

        shutil.rmtree(path)
    else:
        os.unlink(path)


def _which(path: str) -> tuple[int, int]:
    """Tells a lock from a later one; nothing is the same as nothing."""
    try:
        found = os.lstat(path)
    except OSError:
        return 0, 0
    return found.st_ino, found.st_mtime_ns


def _works_in(trees: list[str]) -> bool:
    """Whether a git may be at work there: also where processes cannot be seen."""
    try:
        pids = [one for one in os.listdir("/proc") if one.isdigit()]
    except OSError:
        return True
    return any(_is_git(pid, trees) for pid in pids)


def _is_git(pid: str, trees: list[str]) -> bool:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            if not file.read().startswith("git"):
                return False
        where = f"{os.readlink(f'/proc/{pid}/cwd')}/"
        return any(where.startswith(f"{tree}/") for tree in trees)
    except FileNotFoundError:
        return False  # it has ended
    except OSError:
        return True  # another user's
