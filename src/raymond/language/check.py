"""Check: one command of a gate, and what makes it green."""

import re
from typing import Any

from msgspec import Struct

from raymond.patterns import regex

EXPECTED = 'expected: 0, or: output contains "ok", or: output matches /^ok/'
_CONTAINS = regex(r'output contains "(?P<text>.+)"', re.DOTALL)
_MATCHES = regex(r"output matches /(?P<text>.+)/", re.DOTALL)
_MOST = 255
"""The highest exit code of a process."""


class Check(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A command that Raymond runs; it is green with this exit code, and this output where one is given."""

    run: str
    exit: int = 0
    contains: str = ""
    matches: str = ""
    """A regular expression that is searched in the output."""
    timeout: float = 0.0
    """Seconds; 0 for the `gate_timeout` of its state."""


def expected(check: Check) -> str:
    """What makes it green, in words."""
    if check.contains:
        return f'output contains "{check.contains}"'
    return f"output matches /{check.matches}/" if check.matches else f"exit code {check.exit}"


def expectation(value: Any) -> dict[str, Any]:
    """The fields of a check that `expected` sets; ValueError says what is wrong with it."""
    code = int(value) if isinstance(value, str) and value.strip().isdecimal() else value
    if isinstance(code, int) and not isinstance(code, bool):
        if 0 <= code <= _MOST:
            return {"exit": code}
        raise ValueError(f"`expected` is an exit code of 0 to {_MOST}")
    text = value.strip() if isinstance(value, str) else ""
    if found := _CONTAINS.fullmatch(text):
        return {"contains": found["text"]}
    if found := _MATCHES.fullmatch(text):
        try:
            re.compile(found["text"])
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"`expected` has no regular expression: {error}") from None
        return {"matches": found["text"]}
    raise ValueError("`expected` must be an exit code or say what the output contains or matches")
