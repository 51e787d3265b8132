"""One task of an implementation spec, as a value."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from raymond.language.check import Check
from raymond.loops.formats import document, item_ids, misspelt, verification
from raymond.loops.formats.document import Document
from raymond.loops.formats.queue_item import PlanWarning
from raymond.loops.formats.verification import Part
from raymond.patterns import regex

Status: TypeAlias = Literal["planned", "in progress", "complete", "blocked"]

KNOWN = ("status", "verified", "verification", "last attempt", "context", "implements", "proposed")
_LEVELS = range(2, 5)
_BLANK = " \t\xa0\r\n"
_HEADING = regex(r"([0-9]{1,9}(?:\.[0-9]{1,9}){2,19}z{0,19}[a-z]?)([.:]?)(?:\s+|\Z)")
_MEANT = regex(r"[0-9]+\.[0-9]+\.[^\s.:]")
_PROPOSED = regex(r"(?:^|(?<=\s))(\*{1,3}|_{1,3})proposed\1(?=\s|$)", re.IGNORECASE)
_BULLET = regex(r"[-*+](?:[ \t\xa0]|$)")
_RULE = regex(r"([-*_])[ \t]*(?:\1[ \t]*){2,}\Z")
_PLAIN = regex(r"(?:[-*+] [^\s*_-][^\n]*(?:\n|\Z))+")
"""Lines of a list, which are most of the lines of fields."""
_OVER = regex(r"(?:[ \t\xa0\r]*\n)+(?![-*+ \t\xa0\r\n\x02\x03])")
"""Empty lines, and then one that ends a list."""
_KEYS = {
    "verification": regex(
        r"[-*+]\s+[*_`]*(?:command|expected|timeout|retries|type|criteria|(?:un)?seal)\b", re.IGNORECASE
    ),
    "last attempt": regex(r"[-*+]\s+[*_`]*(?:date|result|attempts|output)\b", re.IGNORECASE),
}
NO_OUTPUT = "none"
_OUTPUT = regex(r"[-*+]\s+[*_`]*output\b", re.IGNORECASE)
_WITHOUT_OUTPUT = regex(rf"[-*+]\s+output: {NO_OUTPUT}\s*\Z")

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


class Task(Struct, frozen=True, kw_only=True):
    """Something to be implemented, and where it is written: `text[start:end]` is the whole section."""

    id: str
    title: str
    status: Status = "planned"
    reason: str = ""
    """Why it is blocked."""
    verified: bool = False
    check: Check | None = None
    is_manual: bool = False
    """A person decides, by the criteria."""
    criteria: tuple[str, ...] = ()
    retries: int | None = None
    seal: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    last_attempt: str = ""
    context: str = ""
    implements: tuple[str, ...] = ()
    """The stories that it is part of."""
    proposed: bool = False
    """An agent added it."""
    problem: str = ""
    """Why its check, or what it implements, cannot be read: it has no `check`, but is not one that needs none."""
    body: str
    """The section without its heading, for the agent."""
    line: int
    """Of the heading, counted from 1."""
    start: int
    end: int


class Spec(Struct, frozen=True):
    """The tasks of a text in their order, and what is odd about them."""

    tasks: tuple[Task, ...]
    warnings: tuple[PlanWarning, ...]


# Where tasks and their fields are


class Place(Struct, frozen=True):
    """The section of a task."""

    id: str
    title: str
    colon: str
    """What comes after the id: a dot, a colon or nothing."""
    proposed: bool
    level: int
    start: int
    body: int
    """Where the line after the heading begins."""
    end: int


class Field(Struct, frozen=True):
    """A line such as `**Status:** 🔵 Planned`."""

    name: str
    """In small letters."""
    start: int
    style: tuple[str, str, bool]
    """What comes before the name, what makes it bold, and whether the colon is inside of that."""
    colon: int
    """Where the name with all that belongs to it ends."""
    value: int
    stop: int
    """Where the value ends: blanks and a comment may follow."""
    next: int
    """Where the next line begins."""


class Layout:
    """A text, what of it counts, its headings, and its tasks."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.document = Document(text)
        self.counted = self.document.counted
        self.headings = self.document.headings
        self.strange: list[tuple[str, int]] = []
        """What is wrong with headings, and where."""
        self.places = self._places()
        self.strange += self._lost()
        self._starts = [heading.start for heading in self.headings]

    def _places(self) -> list[Place]:
        found: list[tuple[document.Heading, re.Match[str], str, bool]] = []
        ends: dict[int, int] = {}
        open_tasks: list[document.Heading] = []
        for heading in self.headings:
            named = self._task(heading)
            # One task is open at most: another one ends it, whatever its level.
            while open_tasks and (named or heading.level <= open_tasks[-1].level):
                ends[open_tasks.pop().start] = heading.start
            if named:
                found.append((heading, *named))
                open_tasks.append(heading)
        end = len(self.text)
        return [
            Place(
                id[1], title, id[2], proposed, one.level, one.start, one.stop, ends.get(one.start, end)
            )
            for one, id, title, proposed in found
        ]  # fmt: skip

    def _lost(self) -> list[tuple[str, int]]:
        """Other headings with fields that would be those of a task."""
        known = {at for _, at in self.strange}
        tasks = [(one.start, one.end) for one in self.places]
        return [one for one in misspelt.lost_tasks(self.counted, self.headings, tasks) if one[1] not in known]

    def _task(self, heading: document.Heading) -> tuple[re.Match[str], str, bool] | None:
        if "." not in heading.title:
            return None
        bare = title = heading.title
        if "*" in title or "_" in title:
            bare = _PROPOSED.sub("", title)
            title = _unbold(bare.strip())
        proposed = bare != heading.title
        id = _HEADING.match(title)
        if not id:
            if _MEANT.match(title):
                token = title.split(maxsplit=1)[0][:40]
                message = f"`{token}` is not the id of a task, such as 1.4.1 or 1.4.1a, so no task begins here"
                self.strange.append((message, heading.start))
            elif heading.level > 1 and (meant := misspelt.task_meant(title)):
                self.strange.append(
                    (misspelt.unread_heading("task", heading.title, f"### {meant}. Title"), heading.start)
                )
            return None
        if heading.level not in _LEVELS:
            message = f"the heading of a task has two to four `#`, so `{id[1]}` is not one"
            self.strange.append((message, heading.start))
            return None
        return id, " ".join(title[id.end() :].split()), proposed

    def fields(self, place: Place) -> Iterator[Field]:
        """The fields of a task. Those that nobody knows are among them: they end the one before."""
        yield from sorted((*self._bold(place), *self._headed(place)), key=_start)

    def _headed(self, place: Place) -> Iterator[Field]:
        """A heading that is a field: that of the verification, which Raymond never writes."""
        for heading in self.headings[bisect_right(self._starts, place.start) :]:
            if heading.start >= place.end:
                break
            told, _, value = heading.title.partition(":")
            name = document.plain(told)
            if misspelt.VERIFICATION in (name, field_meant(name)):
                colon = self.counted.find(":", heading.marks, heading.stop) + 1 or heading.stop
                at = self.counted.find(value.strip(), colon, heading.stop) if value.strip() else heading.stop
                style = ("", "**", True)
                stop = at + len(value.strip())
                yield Field(name, heading.start, style, heading.stop, at, stop, heading.stop)

    def _bold(self, place: Place) -> Iterator[Field]:
        counted, size = self.counted, len(self.text)
        for found in document.NEXT_FIELD.finditer(counted, place.body - 1, place.end):
            before, bold, name, value = found.groups()
            name = " ".join(name.split()).casefold()
            if name not in KNOWN and before.strip(_BLANK) and not field_meant(name):
                continue
            colon, stop = found.span(4)
            bare = value.lstrip()
            start = stop - len(bare) if bare else colon
            style = before, bold, counted[colon - 1] != ":"
            yield Field(name, found.start() + 1, style, colon, start, start + len(bare.rstrip()), min(stop + 1, size))

    def limit(self, field: Field, following: Field | None, place: Place) -> int:
        """Where the lines of a field have to end: at the next field, or the next heading."""
        at = bisect_right(self._starts, field.start)
        heading = self._starts[at] if at < len(self._starts) else place.end
        return min(heading, place.end, following.start if following else place.end)

    def stop(self, field: Field, limit: int) -> int:
        """Where the lines of a field end: those of its paragraph, of its list, and of the code in it."""
        text = self.counted
        at = stop = field.next
        plain = _PLAIN.match(text, at, limit) if field.name != "last attempt" else None
        if plain:
            at = stop = plain.end()
            if _OVER.match(text, at, limit):
                return stop
        lines = _Lines(field.name, has_value=field.stop > field.value)
        if plain:
            lines.is_listed, lines.is_awaited = True, False
        while at < limit:
            after = text.find("\n", at, limit) + 1 or limit
            line = text[at:after].rstrip("\r\n")
            if not lines.takes(line):
                break
            if not lines.is_apart:
                stop = after
            if lines.is_over:
                break
            at = after
        return stop


def _start(field: Field) -> int:
    return field.start


class _Lines:
    """Decides which lines belong to a field."""

    def __init__(self, name: str, *, has_value: bool) -> None:
        self.keys = _KEYS.get(name)
        self.ends_with_output = name == "last attempt"
        self.is_awaited = name == "verification" and not has_value
        """Whether whatever comes first belongs to it, also after an empty line."""
        self.has_value = has_value
        self.is_apart = False
        """Whether empty lines came last."""
        self.is_listed = self.is_after_code = self.is_output = self.is_over = False

    def takes(self, line: str) -> bool:
        bare = line.strip(_BLANK)
        if not bare:
            self.is_apart = True
            return True
        is_taken = self._holds(line, bare)
        self.is_apart = False
        self.is_after_code = bare[0] == document.CLOSING
        # Whatever follows the output was not written with it.
        is_last = self.is_after_code or _WITHOUT_OUTPUT.match(line) is not None
        self.is_over = self.ends_with_output and self.is_output and is_last
        return is_taken

    def _holds(self, line: str, bare: str) -> bool:
        if bare[0] in (document.INSIDE, document.CLOSING):
            return True
        if line[0] in _BLANK:
            return not self.is_apart or self.is_listed
        is_awaited, self.is_awaited = self.is_awaited, False
        if bare[0] == document.OPENING:
            return is_awaited or not self.is_apart
        if _RULE.match(line):
            return False
        if not _BULLET.match(line):
            return is_awaited or not (self.is_apart or self.is_after_code)
        is_key = self.keys is not None and self.keys.match(line) is not None
        is_first = not self.is_listed and not self.has_value
        is_held = not self.is_apart or is_first or is_key
        self.is_listed = True
        self.is_output = _OUTPUT.match(line) is not None
        return is_held


def field_meant(name: str) -> str:
    """The field of a task that an unknown name is probably meant to be; empty when there is none."""
    return misspelt.field_meant(name, KNOWN)


def _unbold(title: str) -> str:
    for mark in ("**", "__"):
        if len(title) > 4 and title.startswith(mark) and title.endswith(mark) and title.count(mark) == 2:
            return title[2:-2].strip()
    return title


# The spec


class _Reader:
    """Reads one text; warnings are noted on the way."""

    def __init__(self, text: str) -> None:
        self.layout = Layout(text)
        self.text = text
        self.counted = self.layout.counted
        self.warnings: list[PlanWarning] = []

    def spec(self) -> Spec:
        for message, at in self.layout.strange:
            self._warn(message, at)
        tasks: dict[str, Task] = {}
        all_tasks = []
        for place in self.layout.places:
            task = self._task(place)
            all_tasks.append(task)
            first = tasks.setdefault(task.id, task)
            if first is not task:
                self._warn(f"the task {task.id} is also in line {first.line}: an id is for one task", place.start)
        for at, message in self.layout.document.unclosed:
            self._warn(message, at)
        return Spec(tuple(all_tasks), tuple(sorted(self.warnings, key=lambda warning: warning.line)))

    def _warn(self, message: str, at: int) -> None:
        self.warnings.append(PlanWarning(message, self.layout.document.number(at)))

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
        if misspelt.VERIFICATION not in seen and "problem" not in values:
            for message, at in misspelt.unread(self.counted, place.body, place.end):
                self._unreadable(message, at, values)
        if not place.title:
            self._warn(f"the task {place.id} has no title", place.start)
        return Task(
            id=place.id,
            title=place.title,
            body=self.text[place.body : place.end].strip("\r\n"),
            line=self.layout.document.number(place.start),
            start=place.start,
            end=place.end,
            **values,
        )

    def _unknown(self, field: Field, values: dict[str, Any]) -> None:
        near = field_meant(field.name)
        if near:
            message = misspelt.unread_field(field.name.capitalize(), near)
            if near == misspelt.VERIFICATION:
                self._unreadable(message, field.start, values)
            else:
                self._warn(message, field.start)

    def _unreadable(self, message: str, at: int, values: dict[str, Any]) -> None:
        """Without this, a task whose check cannot be read would be one that needs none."""
        message = f"its check cannot be read: {message}"
        values.update(check=None, problem=values.get("problem") or message)
        self._warn(message, at)

    def _twice(self, field: Field, values: dict[str, Any]) -> None:
        name = field.name.capitalize()
        if field.name == "verification":
            # To run one of them only would say that something passed of which half was checked.
            self._unreadable("`Verification` is given twice", field.start, values)
        else:
            self._warn(f"`{name}` {_FIRST_COUNTS}", field.start)

    def _value(self, field: Field) -> str:
        return self.counted[field.value : field.stop]

    def status(self, field: Field, _: int, values: dict[str, Any]) -> None:
        value = self._value(field).strip("*_` ")
        status, reason = _status(value)
        if status is None:
            known = ", ".join(SHOWN.values())
            self._warn(f"`{value[:60]}` is not a status ({known}), so the task counts as planned", field.start)
        values["status"] = status or "planned"
        values["reason"] = reason if status == "blocked" else ""

    def verified(self, field: Field, _: int, values: dict[str, Any]) -> None:
        value = self._value(field).strip("*_` ")
        found = _VERIFIED.match(value)
        values["verified"] = bool(found and found[1])
        if value and not found:
            self._warn(f"`{value[:60]}` is neither true nor false, so the task is not verified", field.start)

    def verification(self, field: Field, limit: int, values: dict[str, Any]) -> None:
        stop = self.layout.stop(field, limit)
        found = verification.read_task(self.layout.document, self._value(field), field.value, field.next, stop)
        part = found.parts[0] if found.parts else Part()
        problems = [f"its check cannot be read: {message}" for message, _ in found.problems]
        for message, at in [*zip(problems, (at for _, at in found.problems), strict=True), *found.warnings]:
            self._warn(message, at)
        problem = values.get("problem") or next(iter(problems), "")
        values.update(
            check=part.check if part.command and not problem else None,
            is_manual=any(one.kind == "manual" for one in found.parts),
            criteria=tuple(text for one in found.parts for text in one.criteria),
            retries=found.retries,
            seal=tuple(found.seal),
            may=tuple(found.may),
            problem=problem,
        )

    def last_attempt(self, field: Field, limit: int, values: dict[str, Any]) -> None:
        values["last_attempt"] = self._block(field, limit)

    def context(self, field: Field, limit: int, values: dict[str, Any]) -> None:
        values["context"] = self._block(field, limit)

    def _block(self, field: Field, limit: int) -> str:
        return self.text[field.colon : self.layout.stop(field, limit)].strip(_BLANKS).replace("\r\n", "\n")

    def implements(self, field: Field, limit: int, values: dict[str, Any]) -> None:
        first, *more = self.counted[field.value : max(field.stop, self.layout.stop(field, limit))].split("\n")
        lines = [first]
        for line in more:
            if item_ids.list_is_over(line) or (first.strip() and not item_ids.list_goes_on(lines[-1], line)):
                break
            lines.append(line)
        found = item_ids.read_list(lines, item_ids.STORY_IDS)
        values["implements"] = found.ids
        if not found.rest:
            return
        message = f"{misspelt.quoted(found.rest)} in `Implements` is not read: name each story, as in `US-1, US-2`"
        self._warn(message, field.start)
        if found.ids:  # to leave out a story that is meant would let that pass without this task
            values.update(check=None, problem=values.get("problem") or message)

    def proposed(self, field: Field, _: int, values: dict[str, Any]) -> None:
        value = self._value(field).strip("*_` ").lower()
        found = _VERIFIED.match(value)
        # In doubt a person looks at it.
        values["proposed"] = values["proposed"] or not (found and found[2])
        if not found:
            self._warn(f"`{value[:60]}` is neither yes nor no, so the task counts as proposed", field.start)


_FIELDS = {
    "status": _Reader.status,
    "verified": _Reader.verified,
    "verification": _Reader.verification,
    "last attempt": _Reader.last_attempt,
    "context": _Reader.context,
    "implements": _Reader.implements,
    "proposed": _Reader.proposed,
}


@lru_cache(1 << 10)
def read(text: str) -> Spec:
    """The tasks of a spec. Never raises: what cannot be read is a warning, and a `problem` of its task."""
    return _Reader(text).spec()


@lru_cache(1 << 10)
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
