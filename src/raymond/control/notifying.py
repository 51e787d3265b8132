"""Whom a run notifies, as it was meant where it was said."""

import os
import re

from raymond.errors import UsageError

_PROGRAM = r"\s*(?!/|~)([\w.+@%-]*/[\w.+@%/-]*)(?=\s|[;|&<>]|$)"
"""A command that begins with a program in a folder, named from the directory that one is in."""


def settled(target: str) -> str:
    """`target` with the path of its program written in full, since a run is notified of from elsewhere."""
    found = None if target.startswith(("http://", "https://")) else re.match(_PROGRAM, target)
    if not found:
        return target
    import shlex

    path = os.path.abspath(found[1])
    if not os.path.isfile(path) or not os.access(path, os.X_OK):
        what = "is not executable" if os.path.isfile(path) else "does not exist"
        raise UsageError(f"--notify {target}: {path} {what}", hint="name a program that can be started")
    return shlex.quote(path) + target[found.end() :]
