"""Lists of ids such as `1.4.1, 1.4.2 and 1.5`: what is named, and what is there that is no id.

Whoever writes `1.1.1-1.1.3` means a task in the middle: to take what can be read, and to leave that out, would let
something pass that is not done.
"""

import re
from collections.abc import Iterable

from msgspec import Struct

from raymond.loops.formats import comments
from raymond.patterns import regex

STORY = r"[A-Z][A-Z0-9]*-[0-9]+"
STORIES = regex(rf"(?<!\w){STORY}(?!\w)")
TASKS = regex(r"(?<![\w.])[0-9]{1,9}(?:\.[0-9]{1,9}){0,19}z{0,19}[a-z]?(?!\w|\.\w)")
_ITEM = regex(r"[ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+(?:\[[ xX]?\](?:[ \t]+|$))?")
_TARGET = regex(r"\]\([^)\n]*\)")
_BETWEEN = regex(r"[\s,;&`*_\[\]]+|(?<!\w)and(?!\w)", re.IGNORECASE)
_NOTHING = frozenset(("", "none", "tbd", "n/a", "-", "–", "—"))
_SHOWN = 60


class IdList(Struct, frozen=True):
    """The ids in a text, each once, in their order."""

    ids: tuple[str, ...]
    rest: str = ""
    """The first of what is neither an id nor stands between two; empty when all was read."""


def read(lines: Iterable[str], ids: re.Pattern[str]) -> IdList:
    """The ids in some lines, of which each may be an item of a list."""
    told = "\n".join(_bare(line) for line in lines).rstrip()
    told = told.removesuffix(".")
    if told.strip(" \t*_`:").casefold() in _NOTHING:
        return IdList(())
    found = tuple(dict.fromkeys(ids.findall(told)))
    return IdList(found, next(filter(None, map(_left, ids.split(told))), ""))


def _bare(line: str) -> str:
    line = comments.without(line)
    item = _ITEM.match(line)
    return _TARGET.sub("]", line[item.end() :] if item else line)


def _left(text: str) -> str:
    """What of a text between two ids says something."""
    words = " ".join(_BETWEEN.sub(" ", text).split())
    return words if len(words) <= _SHOWN else f"{words[:_SHOWN]}…"
