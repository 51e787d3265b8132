"""Headings that nearly begin a story or a task: whoever writes one must not believe that it counts."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from raymond.loops.formats.document import Heading
from raymond.patterns import regex

_STORY = regex(
    r"\[?(?:us[_#-]?([0-9]{1,9})\b|us[ \t]+([0-9]{1,9})(?=[ \t]*(?:[:.)\]–—-]|$))"
    r"|(?:user[ \t_-]*)?story[ \t_#-]*([0-9]{1,9})\b)",
    re.IGNORECASE,
)
_TASK = regex(
    r"(?:(?:task|step|item)[ \t#:.-]*)?[\[(`#]*([0-9]{1,9}(?:\.[0-9]{1,9}){2,19}[a-z]?)(?!\w|\.\w)", re.IGNORECASE
)
_FIELD = regex(
    r"^ {0,3}(?:[-*+][ \t]{1,4})?(\*\*|__)[ \t]{0,4}(verification|implemented[ \t]+by|status)[ \t]{0,4}"
    r"(?::[ \t]{0,4}\1|\1[ \t]{0,4}:)([^\n]*)",
    re.MULTILINE | re.IGNORECASE,
)
_STATUS = regex(r"[\W_]*(?:planned|in[ \t_-]*progress|completed?|blocked)\b|\s*[🔵🟡✅⏸]", re.IGNORECASE)
_ABOUT = regex(r"(?:overview|summary|status|introduction|context|background|goals?|progress|notes?)\b", re.IGNORECASE)
"""How sections begin that tell how far the whole spec is."""
_LEVELS = range(2, 5)
_SHOWN = 60


def story(title: str) -> str:
    """The id that a heading is probably meant to have: `US-3` of `US3: Receipts`; empty when it has none."""
    found = _STORY.match(title)
    return f"US-{int(found[1] or found[2] or found[3])}" if found else ""


def task(title: str) -> str:
    """The same for a task: `1.2.1` of `Task 1.2.1: Receipts`."""
    found = _TASK.match(title)
    return found[1] if found else ""


def told(kind: str, title: str, form: str, field: str = "") -> str:
    """What is said about a heading that is not read as a story or a task; `form` says how it would be."""
    shown = title if len(title) <= _SHOWN else f"{title[:_SHOWN]}…"
    has = f", although it has `{field}`" if field else ""
    return f"`{shown}` is not read as a {kind}{has}: write `{form}`"


def field(text: str, start: int, stop: int, names: Sequence[str]) -> str:
    """The first of these fields between two places, as it is called; empty when there is none."""
    for found in _FIELD.finditer(text, start, stop):
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
        name = field(text, heading.stop, stop, ("verification", "status"))
        if name == "Status" and (_ABOUT.match(heading.title) or _is_above(headings, number, starts[at : at + 1])):
            continue
        if name:
            yield told("task", heading.title, "### 1.4.1. Title", name), heading.start


def _is_above(headings: Sequence[Heading], number: int, task: Sequence[int]) -> bool:
    """Whether the next task, if there is one, is in the section of a heading: that has a status as a group of tasks."""
    for at in range(number + 1, len(headings)):
        if not task or headings[at].level <= headings[number].level:
            return False
        if headings[at].start == task[0]:
            return True
    return False
