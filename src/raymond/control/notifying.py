"""Whom a run notifies, as it was meant where it was said."""

import os
import re

from raymond.errors import UsageError

_PROGRAM = r"\s*(?!/|~)([\w.+@%-]*/[\w.+@%/-]*)(?=\s|[;|&<>]|$)"
"""A command that begins with a program in a folder, named from the directory that one is in."""
_ELSEWHERE = r"(?<![\w./~-])\.\.?/[\w.+@%/-]+"
"""A path in the rest of a command that is named from the directory that one is in."""


def settled(target: str) -> str:
    """`target` with the path of its program written in full, since commands run in the person's home."""
    if not target.strip():
        raise UsageError("--notify is empty", hint="give a command or a URL: --notify 'CMD' or --notify https://...")
    if target.startswith(("http://", "https://")):
        return target
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", target)
    if scheme:
        hint = "give a command, or a URL that begins with https:// or http://"
        raise UsageError(f"--notify {target}: {scheme[1]} is not supported", hint=hint)
    found = re.match(_PROGRAM, target)
    other = re.search(_ELSEWHERE, target[found.end() :] if found else target)
    if other and not re.search(r"\bcd\s", target):
        hint = f"notify commands run in your home directory; write the whole path: {os.path.abspath(other[0])}"
        raise UsageError(f"--notify {target}: {other[0]} is relative", hint=hint)
    if not found:
        return target
    import shlex

    path = os.path.abspath(found[1])
    if not os.path.isfile(path) or not os.access(path, os.X_OK):
        what = "is not executable" if os.path.isfile(path) else "does not exist"
        raise UsageError(f"--notify {target}: {path} {what}", hint="name a program that can be started")
    return shlex.quote(path) + target[found.end() :]
