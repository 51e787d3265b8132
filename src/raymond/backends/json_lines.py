"""Lines of JSON from a program that may print anything."""

from typing import Any

import msgspec

from raymond.patterns import regex

_LONE = regex(r"(?<!\\)((?:\\\\)*)\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
"""Half of a surrogate pair; the other half may have been cut off."""
_BAD = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def decode(line: bytes) -> dict[str, Any]:
    """The table in a line; an empty one when there is none."""
    try:
        found = msgspec.json.decode(line)
    except _BAD:
        try:
            found = msgspec.json.decode(_LONE.sub(r"\1\\ufffd", line.decode("utf-8", "replace")))
        except _BAD:
            return {}
    return found if isinstance(found, dict) else {}


def as_table(value: object) -> dict[str, Any]:
    """A value that may be a table; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def number(value: object) -> float:
    """A number that is not negative; 0 for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e18:
        return 0.0
    return float(value)
