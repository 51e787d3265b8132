"""Paths that will be journaled: refused when they are not text."""

from raymond.errors import UsageError
from raymond.text import is_text


def check(path: str, what: str, hint: str = "rename it") -> str:
    """`path`, if it is UTF-8; `what` names it in the error."""
    if not is_text(path):
        raise UsageError(f"{what} is not UTF-8: {path}", hint=hint)
    return path
