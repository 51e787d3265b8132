"""Ids of stories and tasks: what a name such as `1.4` or `1.4.1a` stands for, and lists such as `1.4.1, 1.4.2 and 1.5`.

Whoever writes `1.1.1-1.1.3` means a task in the middle: to take what can be read, and to leave that out, would let
something pass that is not done.
"""

import re
from collections.abc import Iterable

from msgspec import Struct

from raymond.loops.formats.document import FIELD, point
from raymond.patterns import regex

_LETTERS = "abcdefghijklmnopqrstuvwxyz"

STORY_ID = r"[A-Z][A-Z0-9]*-[0-9]+"
STORY_IDS = regex(rf"(?<!\w){STORY_ID}(?!\w)")
TASK_IDS = regex(r"(?<![\w.])[0-9]{1,9}(?:\.[0-9]{1,9}){0,19}z{0,19}[a-z]?(?!\w|\.\w)")
_TARGET = regex(r"\]\([^)\n]*\)")
_BETWEEN = regex(r"[\s,;&`*_\[\]]+|(?<!\w)and(?!\w)", re.IGNORECASE)
_MORE = regex(r"(?:and|to|through)\b|[,;&–—…]|[`*_\[]*(?:[0-9]|[A-Z][A-Z0-9]*-[0-9])")
"""How a line begins that goes on with a list of ids."""
_LESS = regex(r"(?:[,;&–—…-]|\b(?:and|to|through))\Z")
"""How one ends that goes on in the next line."""
_NOTHING = frozenset(("", "none", "tbd", "n/a", "-", "–", "—"))
_SHOWN = 60


def repaired(id: str) -> str:
    """The task that a fix task repairs; any other is its own."""
    return id.rstrip(_LETTERS)


def names(id: str) -> list[str]:
    """All names that stand for a task: those to which it belongs."""
    parts = repaired(id).split(".")
    groups = [".".join(parts[:count]) for count in range(1, len(parts) + 1)]
    return groups if id == groups[-1] else [*groups, id]


def belongs(id: str, name: str) -> bool:
    """Whether a name stands for a task: its own, that of what it repairs, or that of its group or area."""
    return id == name or f"{repaired(id)}.".startswith(f"{name}.")


# Lists


class IdList(Struct, frozen=True):
    """The ids in a text, each once, in their order."""

    ids: tuple[str, ...]
    rest: str = ""
    """The first of what is neither an id nor stands between two; empty when all was read."""


def read_list(lines: Iterable[str], ids: re.Pattern[str]) -> IdList:
    """The ids in some lines, of which each may be an item of a list."""
    told = "\n".join(_bare(line).rstrip().removesuffix(".") for line in lines)
    if told.strip(" \t\n*_`:").casefold() in _NOTHING:
        return IdList(())
    found = tuple(dict.fromkeys(ids.findall(told)))
    return IdList(found, next(filter(None, map(_left, ids.split(told))), ""))


def list_goes_on(last: str, line: str) -> bool:
    """Whether a list of ids that has come to the line `last` goes on in the next one of its paragraph."""
    return bool(_LESS.search(last.rstrip()) or _MORE.match(line))


def list_is_over(line: str) -> bool:
    """Whether another field begins in a line, of whatever name."""
    return FIELD.match(line) is not None


def _bare(line: str) -> str:
    item = point(line)
    return _TARGET.sub("]", line[item.at :] if item else line)


def _left(text: str) -> str:
    """What of a text between two ids says something."""
    words = " ".join(_BETWEEN.sub(" ", text).split())
    return words if len(words) <= _SHOWN else f"{words[:_SHOWN]}…"
