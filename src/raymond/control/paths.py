"""Paths that will be journaled: refused when they are not text."""

import os

from raymond.errors import UsageError
from raymond.text import is_text


def check(path: str, what: str, hint: str = "rename it") -> str:
    """`path`, if it is UTF-8; `what` names it in the error."""
    if not is_text(path):
        raise UsageError(f"{what} is not UTF-8: {path}", hint=hint)
    return path


def opened(root: str) -> str:
    """The real path of a directory that is opened to agents with `--root`; refused when there is none."""
    if not os.path.isdir(root):
        raise UsageError(f"there is no directory `{root}`", hint="--root names one that agents may `cd` to")
    return check(os.path.realpath(root), "--root")
