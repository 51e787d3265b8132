"""The tree of a check: the repository, or the directory alone, and every file in it."""

import errno
import os
from collections.abc import Collection, Iterator

from raymond.system import git
from raymond.verifier.decides import SKIPPED

MOST = 1_000_000
"""Files of a tree; a home directory or a whole disk has more."""
_MOST_LOOSE = 100_000
"""Files of a directory that is no repository, which may be the wrong one."""


def top_of(cwd: str) -> str:
    """The top of the repository that holds `cwd`, if it is ours or git trusts it; without one, `cwd` itself."""
    return git.top(cwd) or cwd


def check_size(top: str, most: int = _MOST_LOOSE) -> None:
    """Refuse a directory that is no repository and has too many files, before anything of it is read."""
    for _ in walk(top, (), most):
        pass


def walk(top: str, skipped: Collection[str], most: int = MOST) -> Iterator[tuple[str, list[str], list[str]]]:
    """Every folder below `top` but those of tools and `skipped`, with its files and its folders; names are relative.

    Links are files here: nothing is looked up behind them.
    """
    pending, seen = [""], 0
    while pending:
        folder = pending.pop()
        files, below = _entries(f"{top}/{folder}" if folder else top)
        seen += len(files) + len(below)
        if seen > most:
            raise OSError(
                errno.E2BIG, f"there are more than {most:,} files in {top}; run it in a repository of its own"
            )
        prefix = f"{folder}/" if folder else ""
        pending += [path for name in below if (path := f"{prefix}{name}") not in skipped and name not in SKIPPED]
        yield folder, files, below


def _entries(path: str) -> tuple[list[str], list[str]]:
    files: list[str] = []
    folders: list[str] = []
    try:
        with os.scandir(path) as found:
            for one in found:
                if one.name.isascii() or _is_text(one.name):
                    (folders if one.is_dir(follow_symlinks=False) else files).append(one.name)
    except OSError:  # it went away, or may not be read: then no check can read it either
        pass
    return files, folders


def _is_text(name: str) -> bool:
    """Whether a name is UTF-8, as that of every file that a check is known to load."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
