"""Fields and headings that are nearly right: whoever writes one must not believe that it counts."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from functools import lru_cache

from raymond.loops.formats.document import Heading
from raymond.patterns import regex

VERIFICATION = "verification"
_ALIKE = 0.82
"""`Verification notes` is no slip of the pen."""
_LINE = regex(
    r"^[ \t\xa0]{0,3}(?:[-*+][ \t]{1,4})?"
    r"(?:[*_]{0,3}([a-z]{9,15})[*_]{0,3}[ \t]{0,4}:|(?:\*\*|__)([a-z]{9,15})(?:\*\*|__)[ \t]*\r?$)",
    re.MULTILINE | re.IGNORECASE,
)

_STORY_TITLE = regex(
    r"\[?(?:us[_#-]?([0-9]{1,9})\b|us[ \t]+([0-9]{1,9})(?=[ \t]*(?:[:.)\]–—-]|$))"
    r"|(?:user[ \t_-]*)?story[ \t_#-]*([0-9]{1,9})\b)",
    re.IGNORECASE,
)
_TASK_TITLE = regex(
    r"(?:(?:task|step|item)[ \t#:.-]*)?[\[(`#]*([0-9]{1,9}(?:\.[0-9]{1,9}){2,19}[a-z]?)(?!\w|\.\w)", re.IGNORECASE
)
_TELLING_FIELD = regex(
    r"^ {0,3}(?:[-*+][ \t]{1,4})?(\*\*|__)[ \t]{0,4}(verification|implemented[ \t]+by|status)[ \t]{0,4}"
    r"(?::[ \t]{0,4}\1|\1[ \t]{0,4}:)([^\n]*)",
    re.MULTILINE | re.IGNORECASE,
)
_STATUS = regex(r"[\W_]*(?:planned|in[ \t_-]*progress|completed?|blocked)\b|\s*[🔵🟡✅⏸]", re.IGNORECASE)
_ABOUT = regex(r"(?:overview|summary|status|introduction|context|background|goals?|progress|notes?)\b", re.IGNORECASE)
"""How sections begin that tell how far the whole spec is."""
_LEVELS = range(2, 5)
_SHOWN = 60


# Fields


@lru_cache(4096)
def field_meant(name: str, known: tuple[str, ...]) -> str:
    """The known field that an unknown name is probably meant to be; empty when there is none."""
    plain = " ".join(name.replace("-", " ").replace("_", " ").split()).casefold()
    found = get_close_matches(plain, known, 1, _ALIKE)
    return found[0] if found else ""


def unread_field(name: str, field: str) -> str:
    """What is said about it."""
    return f"`{name}` is not read: did you mean `{field.capitalize()}`?"


def quoted(text: str) -> str:
    """Somebody's words in a sentence of ours: backticks around others would hide where they end."""
    return f'"{text}"' if "`" in text else f"`{text}`"


def unread(text: str, start: int, end: int) -> Iterator[tuple[str, int]]:
    """Lines that look like a verification, but are not a field: what is said about each, and where it begins."""
    for found in _LINE.finditer(text, start, end):
        name = found[1] or found[2]
        if field_meant(name, (VERIFICATION,)):
            exact = name.casefold() == VERIFICATION
            yield (
                (f"`{name}` is not read: write `**{name}:**`" if exact else unread_field(name, VERIFICATION)),
                found.start(),
            )


def unread_in(line: str) -> list[str]:
    """The same for one line."""
    if ":" not in line and not line.rstrip().endswith(("**", "__")):
        return []
    return [message for message, _ in unread(line, 0, len(line))]


# Headings


def story_meant(title: str) -> str:
    """The id that a heading is probably meant to have: `US-3` of `US3: Receipts`; empty when it has none."""
    found = _STORY_TITLE.match(title)
    return f"US-{int(found[1] or found[2] or found[3])}" if found else ""


def task_meant(title: str) -> str:
    """The same for a task: `1.2.1` of `Task 1.2.1: Receipts`."""
    found = _TASK_TITLE.match(title)
    return found[1] if found else ""


def unread_heading(kind: str, title: str, form: str, field: str = "") -> str:
    """What is said about a heading that is not read as a story or a task; `form` says how it would be."""
    shown = title if len(title) <= _SHOWN else f"{title[:_SHOWN]}…"
    has = f", although it has `{field}`" if field else ""
    return f"`{shown}` is not read as a {kind}{has}: write `{form}`"


def field_in(text: str, start: int, stop: int, names: Sequence[str]) -> str:
    """The first of these fields between two places, as it is called; empty when there is none."""
    for found in _TELLING_FIELD.finditer(text, start, stop):
        name = " ".join(found[2].split()).casefold()
        if name in names and (name != "status" or _STATUS.match(found[3])):
            return name.capitalize()
    return ""


def lost_tasks(text: str, headings: Sequence[Heading], tasks: Sequence[tuple[int, int]]) -> Iterator[tuple[str, int]]:
    """What is said about headings that have what only a task has, and where each is; `tasks` begin and end there."""
    starts = [start for start, _ in tasks]
    for number, heading in enumerate(headings):
        at = bisect_right(starts, heading.start)
        if heading.level not in _LEVELS or (at and heading.start < tasks[at - 1][1]):
            continue
        stop = headings[number + 1].start if number + 1 < len(headings) else len(text)
        name = field_in(text, heading.stop, stop, ("verification", "status"))
        if name == "Status" and (_ABOUT.match(heading.title) or _is_above(headings, number, starts[at : at + 1])):
            continue
        if name:
            yield unread_heading("task", heading.title, "### 1.4.1. Title", name), heading.start


def _is_above(headings: Sequence[Heading], number: int, task: Sequence[int]) -> bool:
    """Whether the next task, if there is one, is in the section of a heading: that has a status as a group of tasks."""
    for at in range(number + 1, len(headings)):
        if not task or headings[at].level <= headings[number].level:
            return False
        if headings[at].start == task[0]:
            return True
    return False
