"""Implementation specs, docs/implementation/{N}-{name}/{N}.{M}-{topic}.md: markdown with one section per task."""

import re
from bisect import bisect_left
from functools import lru_cache
from typing import Any

from raymond.loops.formats import id_list, near_fields, task_check, task_layout
from raymond.loops.formats.item import Doubt
from raymond.loops.formats.task import Spec, Status, Task
from raymond.loops.formats.task_layout import Field, Layout, Place
from raymond.patterns import regex

SHOWN: dict[Status, str] = {
    "planned": "🔵 Planned",
    "in progress": "🟡 In Progress",
    "complete": "✅ Complete",
    "blocked": "⏸️ Blocked",
}
_SIGNS: dict[str, Status] = {shown[0]: status for status, shown in SHOWN.items()}
_STATUS = regex(
    rf"([{''.join(_SIGNS)}])?[\ufe0e\ufe0f]?\s*(?:(planned|in[ \t_-]*progress|completed?|blocked)(?!\w))?(.*)",
    re.IGNORECASE | re.DOTALL,
)
_VERIFIED = regex(r"(?:✅\s*)?(true|yes)\b|(?:❌\s*)?(false|no)\b", re.IGNORECASE)
_ID = regex(r"([0-9]{1,9}(?:\.[0-9]{1,9})*)([a-z]*)")
_LAST = (1 << 62,)
_FIRST_COUNTS = "is given twice, and only the first one counts"
_BLANKS = " \t\r\n\xa0"


class _Reader:
    """Reads one text; doubts are noted on the way."""

    def __init__(self, text: str) -> None:
        self.layout = Layout(text)
        self.text = text
        self.mask = self.layout.mask.text
        self.endings = [found.start() for found in re.finditer("\n", text)]
        self.doubts: list[Doubt] = []

    def spec(self) -> Spec:
        for message, at in self.layout.strange:
            self._doubt(message, at)
        tasks: dict[str, Task] = {}
        all_tasks = []
        for place in self.layout.places:
            task = self._task(place)
            all_tasks.append(task)
            first = tasks.setdefault(task.id, task)
            if first is not task:
                self._doubt(f"the task {task.id} is also in line {first.line}: an id is for one task", place.start)
        self._left_open()
        return Spec(tuple(all_tasks), tuple(sorted(self.doubts, key=lambda doubt: doubt.line)))

    def _line(self, at: int) -> int:
        return bisect_left(self.endings, at) + 1

    def _doubt(self, message: str, at: int) -> None:
        self.doubts.append(Doubt(message, self._line(at)))

    def _left_open(self) -> None:
        mask = self.layout.mask
        if mask.fence is not None:
            self._doubt("this block of code is not closed, so what follows is part of it", mask.fence)
        if mask.comment is not None:
            self._doubt("this comment is not closed, so what follows is part of it", mask.comment)

    def _task(self, place: Place) -> Task:
        values: dict[str, Any] = {"proposed": place.proposed}
        seen: set[str] = set()
        fields = list(self.layout.fields(place))
        for field, following in zip(fields, [*fields[1:], None], strict=False):
            take = _FIELDS.get(field.name)
            if take is None:
                self._unknown(field, values)
                continue
            if field.name in seen:
                self._twice(field, values)
                continue
            seen.add(field.name)
            take(self, field, self.layout.limit(field, following, place), values)
        if near_fields.VERIFICATION not in seen and "problem" not in values:
            for message, at in near_fields.unread(self.mask, place.body, place.end):
                self._unreadable(message, at, values)
        if not place.title:
            self._doubt(f"the task {place.id} has no title", place.start)
        return Task(
            id=place.id,
            title=place.title,
            body=self.text[place.body : place.end].strip("\r\n"),
            line=self._line(place.start),
            start=place.start,
            end=place.end,
            **values,
        )

    def _unknown(self, field: Field, values: dict[str, Any]) -> None:
        near = task_layout.meant(field.name)
        if near:
            message = near_fields.told(field.name.capitalize(), near)
            if near == near_fields.VERIFICATION:
                self._unreadable(message, field.start, values)
            else:
                self._doubt(message, field.start)

    def _unreadable(self, message: str, at: int, values: dict[str, Any]) -> None:
        """Without this, a task whose check cannot be read would be one that needs none."""
        message = f"its check cannot be read: {message}"
        values.update(check=None, problem=values.get("problem") or message)
        self._doubt(message, at)

    def _twice(self, field: Field, values: dict[str, Any]) -> None:
        name = field.name.capitalize()
        if field.name == "verification":
            # To run one of them only would say that something passed of which half was checked.
            self._unreadable("`Verification` is given twice", field.start, values)
        else:
            self._doubt(f"`{name}` {_FIRST_COUNTS}", field.start)

    def _value(self, field: Field) -> str:
        return self.mask[field.value : field.stop]

    def status(self, field: Field, _: int, values: dict[str, Any]) -> None:
        value = self._value(field).strip("*_` ")
        status, reason = _status(value)
        if status is None:
            known = ", ".join(SHOWN.values())
            self._doubt(f"`{value[:60]}` is not a status ({known}), so the task counts as planned", field.start)
        values["status"] = status or "planned"
        values["reason"] = reason if status == "blocked" else ""

    def verified(self, field: Field, _: int, values: dict[str, Any]) -> None:
        value = self._value(field).strip("*_` ")
        found = _VERIFIED.match(value)
        values["verified"] = bool(found and found[1])
        if value and not found:
            self._doubt(f"`{value[:60]}` is neither true nor false, so the task is not verified", field.start)

    def verification(self, field: Field, limit: int, values: dict[str, Any]) -> None:
        stop = self.layout.stop(field, limit)
        found = task_check.read(self.text, self.mask, field.value, field.stop, stop)
        for message, at in found.doubts:
            self._doubt(message, at)
        problem = values.get("problem") or found.problem
        values.update(
            check=None if problem else found.check,
            is_manual=found.is_manual,
            criteria=found.criteria,
            retries=found.retries,
            seal=found.seal,
            may=found.may,
            problem=problem,
        )

    def last_attempt(self, field: Field, limit: int, values: dict[str, Any]) -> None:
        values["last_attempt"] = self._block(field, limit)

    def context(self, field: Field, limit: int, values: dict[str, Any]) -> None:
        values["context"] = self._block(field, limit)

    def _block(self, field: Field, limit: int) -> str:
        return self.text[field.colon : self.layout.stop(field, limit)].strip(_BLANKS).replace("\r\n", "\n")

    def implements(self, field: Field, limit: int, values: dict[str, Any]) -> None:
        first, *more = self.mask[field.value : max(field.stop, self.layout.stop(field, limit))].split("\n")
        lines = [first]
        for line in more:
            if id_list.is_over(line) or (first.strip() and not id_list.goes_on(lines[-1], line)):
                break
            lines.append(line)
        found = id_list.read(lines, id_list.STORIES)
        values["implements"] = found.ids
        if not found.rest:
            return
        message = f"{near_fields.quoted(found.rest)} in `Implements` is not read: name each story, as in `US-1, US-2`"
        self._doubt(message, field.start)
        if found.ids:  # to leave out a story that is meant would let that pass without this task
            values.update(check=None, problem=values.get("problem") or message)

    def proposed(self, field: Field, _: int, values: dict[str, Any]) -> None:
        value = self._value(field).strip("*_` ").lower()
        found = _VERIFIED.match(value)
        # In doubt a person looks at it.
        values["proposed"] = values["proposed"] or not (found and found[2])
        if not found:
            self._doubt(f"`{value[:60]}` is neither yes nor no, so the task counts as proposed", field.start)


_FIELDS = {
    "status": _Reader.status,
    "verified": _Reader.verified,
    "verification": _Reader.verification,
    "last attempt": _Reader.last_attempt,
    "context": _Reader.context,
    "implements": _Reader.implements,
    "proposed": _Reader.proposed,
}


@lru_cache(64)
def read(text: str) -> Spec:
    """The tasks of a spec. Never raises: what cannot be read is a doubt, and a `problem` of its task."""
    return _Reader(text).spec()


def _status(value: str) -> tuple[Status | None, str]:
    """A status with what is said about it; None when it is not one, or two at once."""
    found = _STATUS.match(value)
    if not found or not (found[1] or found[2]):
        return None, ""
    by_sign = _SIGNS[found[1]] if found[1] else None
    by_word = _word(found[2]) if found[2] else None
    if by_sign and by_word and by_sign != by_word:
        return None, ""
    return by_sign or by_word, _reason(found[3])


def _word(word: str) -> Status:
    first = word[:1].lower()
    statuses: dict[str, Status] = {"p": "planned", "i": "in progress", "c": "complete", "b": "blocked"}
    return statuses[first]


def _reason(rest: str) -> str:
    rest = rest.strip()
    if rest[:1] == "(" and rest[-1:] == ")":
        return rest[1:-1].strip()
    return rest.lstrip(":–—- ").strip()


# Ids


def order(id: str) -> tuple[tuple[int, ...], str]:
    """By this, 1.4.2 comes before 1.4.10, and 1.4.1a between 1.4.1 and 1.4.2. What is not an id comes last."""
    found = _ID.fullmatch(id)
    return (tuple(map(int, found[1].split("."))), found[2]) if found else (_LAST, id)


def area(id: str) -> str:
    """The area of a task: `1` of 1.4.2."""
    return id.split(".", 1)[0]


def group(id: str) -> str:
    """The group of a task: `1.4` of 1.4.2."""
    return ".".join(id.split(".", 2)[:2])
