"""A PRD: the stories under `## User Stories`, each with how it is verified."""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from raymond.language.check import Check
from raymond.loops.formats import item_ids, misspelt, verification
from raymond.loops.formats.document import FIELD, Document, Heading, Line, plain, point
from raymond.loops.formats.queue_item import PlanWarning
from raymond.loops.formats.verification import Part
from raymond.patterns import regex

Kind: TypeAlias = Literal["command", "manual", "tasks", "composite"]

TITLE = "User Stories"
ID = item_ids.STORY_ID
_HEAD = regex(rf"({ID})[ \t]*(?:[:.–—-]+[ \t]*(.*)|$)")
_ALMOST = regex(rf"\[?{ID}\b")
_LEVELS = range(2, 6)
_FIELDS = {
    "acceptance criteria": "criteria",
    "verification": "verification",
    "implemented by": "tasks",
    "priority": "priority",
    "depends on": "depends",
}
_TELLING = ("verification", "implemented by")
"""Fields that only a story has."""
_NAMES = "|".join(name.replace(" ", "[ \t]+") for name in _FIELDS)
_PLAIN = regex(rf"({_NAMES})[ \t]*:(.*)", re.IGNORECASE)
_KNOWN = tuple(_FIELDS)
_NUMBER = regex(r"[Pp]?([0-9]{1,4})")
_ROLE, _WANT, _BENEFIT = regex(r"\bas an?\b", re.I), regex(r"\bI want\b", re.I), regex(r"\bso that\b", re.I)
_INTRO = 4000
"""Characters in which a story says who wants what."""


class StoryCheck(Struct, frozen=True):
    """How a story is verified."""

    kind: Kind
    checks: tuple[Check, ...] = ()
    """The command, if `kind` is `command`."""
    criteria: tuple[str, ...] = ()
    """What a person looks at, if it is `manual`."""
    parts: tuple["StoryCheck", ...] = ()
    """All of which have to pass, if it is `composite`."""

    def commands(self) -> Iterator[Check]:
        """All commands, also those of its parts."""
        yield from self.checks
        for part in self.parts:
            yield from part.commands()


class Story(Struct, frozen=True):
    """What somebody wants, and where it is written: `text[start:end]`."""

    id: str
    title: str
    line: int
    """Of its heading, counted from 1."""
    start: int
    end: int
    body: str
    """The text under its heading."""
    role: str = ""
    want: str = ""
    benefit: str = ""
    criteria: tuple[str, ...] = ()
    given: StoryCheck | None = None
    """What its `Verification` says; None when it has none."""
    problem: str = ""
    """Why its `Verification`, or what it names, cannot be used. It is neither unverified nor verified otherwise."""
    implemented_by: tuple[str, ...] = ()
    """Tasks such as `1.4.1`, groups such as `1.4`, areas such as `1`."""
    priority: int = 1
    """1 comes first."""
    depends_on: tuple[str, ...] = ()

    def check(self, *, has_tasks: bool = False) -> StoryCheck:
        """How it is verified; without a word about it by its tasks, and without tasks by a person.

        What cannot be used is left to a person, who is told so: nothing else may pass in its place.
        """
        if self.problem:
            return StoryCheck("manual", criteria=(f"it cannot be verified: {self.problem}",))
        if self.given:
            return self.given
        if has_tasks or self.implemented_by:
            return StoryCheck("tasks")
        return StoryCheck("manual", criteria=self.criteria)


# The PRD


class Prd(Struct, frozen=True):
    """The stories of a text in their order, and what is odd about them."""

    stories: tuple[Story, ...]
    warnings: tuple[PlanWarning, ...]
    twice: tuple[tuple[str, int, int], ...] = ()
    """Ids that several stories have, with the line of the first one and of the other."""


class _Field:
    """A field of a story: what follows its name, and the lines under it."""

    def __init__(self, value: str, at: int, number: int) -> None:
        self.value = value
        self.at = at
        self.number = number
        self.lines: list[Line] = []

    def texts(self, *, lists_ids: bool = False) -> Iterator[str]:
        """Its value, or the list or paragraph under it; a line that goes on where a comma ends one, too."""
        if self.value:
            yield self.value
        last, is_gap = self.value, False
        for line in self.lines:
            text = line.text
            if line.kind or (lists_ids and item_ids.list_is_over(text)):
                return
            if not text.strip():
                if self.value:
                    return
                is_gap = bool(last)
                continue
            goes_on = bool(point(text)) or text[0] in " \t" or last.endswith(",")
            goes_on = goes_on or (lists_ids and not is_gap and item_ids.list_goes_on(last, text))
            if not goes_on and (self.value or is_gap):
                return
            yield text
            last, is_gap = text.rstrip(), False


def read(text: str) -> Prd:
    """The stories of a PRD. Never raises: a text without any has none."""
    document = Document(text)
    headings = document.headings
    heads = {at: head for at, one in enumerate(headings) if (head := _head(one))}
    counted, warnings = _counted(headings, heads)
    warnings += [*_lost(document, heads), *document.unclosed]
    found = [PlanWarning(message, document.number(offset)) for offset, message in warnings]
    stories: dict[str, Story] = {}
    twice = []
    for at, (id, title) in counted.items():
        heading, line = headings[at], document.number(headings[at].start)
        if id in stories:
            found.append(PlanWarning(f"there are two stories {id}, and only the first one counts", line))
            twice.append((id, stories[id].line, line))
            continue
        later = range(at + 1, len(headings))
        end = next((headings[one].start for one in later if one in heads or headings[one].level <= heading.level), None)
        reader = _StoryReader(document, heading, line, len(text) if end is None else end)
        stories[id] = reader.story(id, title)
        found += reader.warnings
    return Prd(tuple(stories.values()), tuple(sorted(found, key=lambda warning: warning.line)), tuple(twice))


def _head(heading: Heading) -> tuple[str, str] | None:
    """Id and title in the heading of a story."""
    if heading.level not in _LEVELS:
        return None
    found = _HEAD.fullmatch(_bare(heading.title))
    return (found[1], (found[2] or "").strip(" \t*_")) if found else None


def _bare(title: str) -> str:
    return " ".join(title.split()).strip(" \t*_")


def _counted(
    headings: list[Heading], heads: dict[int, tuple[str, str]]
) -> tuple[dict[int, tuple[str, str]], list[tuple[int, str]]]:
    """The headings of stories that count, and warnings about others: those under the title, or all if it has none."""
    under = _under(headings)
    inside = {at: head for at, head in heads.items() if at in under}
    warnings = []
    for at, one in enumerate(headings):
        if inside and at in heads and at not in under:
            warnings.append((one.start, f"{heads[at][0]} is not under `{TITLE}`, so it does not count"))
    return inside or heads, warnings


def _lost(document: Document, heads: dict[int, tuple[str, str]]) -> Iterator[tuple[int, str]]:
    """Headings that are nearly those of stories, and what is said about each."""
    headings = document.headings
    under = _under(headings)
    level = 0
    for at, one in enumerate(headings):
        if at in heads or one.level <= level:
            level = one.level if at in heads else 0
        if at in heads or one.level == 1 or (under and at not in under):
            continue
        title = _bare(one.title)
        almost = _ALMOST.match(title) if under else None
        id = almost[0].strip("[") if almost else misspelt.story_meant(title)
        stop = headings[at + 1].start if at + 1 < len(headings) else len(document.text)
        is_told = id or level or _is_field(title)
        field = "" if is_told else misspelt.field_in(document.counted, one.stop, stop, _TELLING)
        if id or field:
            yield one.start, misspelt.unread_heading("story", one.title, f"### {id or 'US-1'}: Title", field)


def _is_field(title: str) -> bool:
    return plain(title.partition(":")[0]) in _FIELDS


def _under(headings: list[Heading]) -> set[int]:
    """The headings in sections with the title."""
    wanted = plain(TITLE)
    level = 0
    found = set()
    for at, heading in enumerate(headings):
        if level and heading.level <= level:
            level = 0
        if level:
            found.add(at)
        elif plain(heading.title) == wanted:
            level = heading.level
    return found


class _StoryReader:
    """Reads the lines of one story."""

    def __init__(self, document: Document, heading: Heading, line: int, end: int) -> None:
        self.document, self.heading, self.number, self.end = document, heading, line, end
        self.fields: dict[str, _Field] = {}
        self.intro: list[str] = []
        self.warnings: list[PlanWarning] = []
        self.problem = ""
        self.problem_number = 0

    def story(self, id: str, title: str) -> Story:
        self._split()
        criteria = tuple(self._criteria())
        tasks, depends, priority = self._tasks(), self._depends(id), self._priority()
        verification = self._verification(criteria)
        if not title:
            self._warn(f"{id} has no title")
        if not (criteria or tasks or "verification" in self.fields):
            self._warn(f"{id} names no criteria, no verification and no tasks")
        if self.problem:
            number = self.problem_number or self.fields["verification"].number
            self.warnings.append(PlanWarning(f"{id} cannot be verified: {self.problem}", number))
        role, want, benefit = _wish(self.intro)
        return Story(
            id,
            title or id,
            self.number,
            self.heading.start,
            self.end,
            self.document.text[self.heading.stop : self.end].strip("\r\n"),
            role,
            want,
            benefit,
            criteria,
            verification,
            self.problem,
            tasks,
            priority,
            depends,
        )

    def _split(self) -> None:
        """Find the fields, and the lines that belong to each."""
        field: _Field | None = None
        is_intro = True
        suspects: list[tuple[str, int]] = []
        for number, line in enumerate(self.document.lines(self.heading.stop, self.end), self.number + 1):
            named, value, at = self._named(line)
            name = _FIELDS.get(plain(named), "")
            if name:
                field, is_intro = _Field(value, at, number), False
                self._keep(name, field)
            elif near := misspelt.field_meant(named, _KNOWN) if named else "":
                field, is_intro = None, False
                self._unread(named, near, number)
            elif line.kind == "heading":
                field, is_intro = None, False
            elif field:
                field.lines.append(line)
            elif is_intro and not line.kind:
                self.intro.append(line.text)
            if not name and not line.kind:
                suspects += [(message, number) for message in misspelt.unread_in(line.text)]
        if "verification" not in self.fields:
            for message, number in suspects:
                self._unreadable(message, number)

    def _unread(self, name: str, near: str, number: int) -> None:
        if near == misspelt.VERIFICATION:
            self._unreadable(misspelt.unread_field(name, near), number)
        else:
            self.warnings.append(PlanWarning(misspelt.unread_field(name, near), number))

    def _unreadable(self, message: str, number: int) -> None:
        if not self.problem:
            self.problem, self.problem_number = message, number

    def _named(self, line: Line) -> tuple[str, str, int]:
        """The name of the field that a line may begin with, its value there, and where that is."""
        text = line.text
        if line.kind == "heading":
            name, _, value = text.strip().strip("#").partition(":")
            at = text.find(":") + 1
        elif not line.kind and (found := FIELD.match(text)):
            name, value, at = found[3], found[4], found.start(4)
        elif not line.kind and (found := _PLAIN.match(text)):
            name, value, at = found[1], found[2], found.start(2)
        else:
            return "", "", 0
        blanks = len(value) - len(value.lstrip(" \t*_")) if line.kind else len(value) - len(value.lstrip())
        value = value.strip(" \t*_") if line.kind else value.strip()
        return name.strip(" \t*_"), value, line.start + at + blanks

    def _keep(self, name: str, field: _Field) -> None:
        if name not in self.fields:
            self.fields[name] = field
        elif name == "verification":
            self.problem = "it has two verifications"
        else:
            self.warnings.append(PlanWarning("this is given twice, and only the first one counts", field.number))

    def _warn(self, message: str) -> None:
        self.warnings.append(PlanWarning(message, self.number))

    def _criteria(self) -> Iterator[str]:
        field = self.fields.get("criteria")
        current = ""
        for text in field.texts() if field else ():
            item = point(text)
            if item or not current:
                if current:
                    yield current
                current = text[item.at if item else 0 :].strip()
            else:
                current += f" {text.strip()}"
        if current:
            yield current

    def _verification(self, criteria: tuple[str, ...]) -> StoryCheck | None:
        field = self.fields.get("verification")
        if field is None:
            return None
        found = verification.read(self.document, field.value, field.at, field.lines, of_story=True)
        self.warnings += [PlanWarning(message, self.document.number(at)) for message, at in found.warnings]
        for message, at in found.problems[:1]:
            self._unreadable(message, self.document.number(at))
        return None if self.problem else _check(found.parts, criteria)

    def _tasks(self) -> tuple[str, ...]:
        way_out = "name each task, or their group, as in `1.4.1, 1.4.2`"
        return self._named_in("tasks", item_ids.TASK_IDS, f"in `Implemented by` is not read: {way_out}")

    def _depends(self, id: str) -> tuple[str, ...]:
        way_out = "name each story, as in `US-1, US-2`"
        found = self._named_in("depends", item_ids.STORY_IDS, f"in `Depends on` is not read: {way_out}")
        if id in found:
            self.warnings.append(PlanWarning(f"{id} depends on itself", self.fields["depends"].number))
        return tuple(one for one in found if one != id)

    def _named_in(self, name: str, ids: re.Pattern[str], told: str) -> tuple[str, ...]:
        """The ids in a field; whatever else is there keeps the story from passing."""
        field = self.fields.get(name)
        if field is None:
            return ()
        found = item_ids.read_list(field.texts(lists_ids=True), ids)
        if found.rest:
            self._unreadable(f"{misspelt.quoted(found.rest)} {told}", field.number)
        return found.ids

    def _priority(self) -> int:
        field = self.fields.get("priority")
        found = _NUMBER.fullmatch(field.value.strip("`* ")) if field else None
        if field and not found:
            self.warnings.append(PlanWarning(f"`{field.value[:60]}` is not a priority such as 1", field.number))
        return int(found[1]) if found else 1


def _check(parts: Sequence[Part], criteria: tuple[str, ...]) -> StoryCheck:
    """What the parts of a verification say; a person looks at these criteria where no others are named."""
    checks = [
        StoryCheck("command", (part.check,))
        if part.kind == "command"
        else StoryCheck("manual", criteria=tuple(part.criteria) or criteria)
        if part.kind == "manual"
        else StoryCheck("tasks")
        for part in parts
    ]
    return checks[0] if len(checks) == 1 else StoryCheck("composite", parts=tuple(checks))


def _wish(lines: list[str]) -> tuple[str, str, str]:
    """Who wants what, and what for."""
    told = " ".join(" ".join(lines)[:_INTRO].replace("*", " ").replace("_", " ").replace(">", " ").split())
    role = _ROLE.search(told)
    want = _WANT.search(told, role.end() if role else 0)
    benefit = _BENEFIT.search(told, want.end() if want else 0)
    if not want:
        return "", "", ""
    who = told[role.end() : want.start()] if role else ""
    what = told[want.end() : benefit.start() if benefit else None]
    return _clean(who), _clean(what), _clean(told[benefit.end() :] if benefit else "")


def _clean(text: str) -> str:
    return text.strip(" ,;:.-")
