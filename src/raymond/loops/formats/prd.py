"""A PRD: the stories under `## User Stories`, each with how it is verified."""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Literal, TypeAlias

from msgspec import Struct

from raymond import durations
from raymond.language.check import EXPECTED, Check, expectation
from raymond.loops.formats import item_ids, misspelt
from raymond.loops.formats.document import Document, Heading, Line, columns, plain
from raymond.loops.formats.queue_item import PlanWarning, unquoted
from raymond.patterns import regex

Kind: TypeAlias = Literal["command", "manual", "tasks", "composite"]

_BULLET = regex(r"([ \t]*)(?:[-*+]|[0-9]{1,9}[.)])(?:[ \t]+(?:\[[ xX]\][ \t]+)?|$)")
_KEY = regex(r"(?:\*\*|__)?([a-z]+)(?:\*\*|__)?[ \t]*:(?:\*\*|__)?(?:[ \t]+(.*)|$)", re.IGNORECASE)
_KEYS = ("type", "command", "expected", "timeout", "retries", "criteria", "manual", "checks")
_KINDS = ("command", "manual", "tasks", "composite")
_QUOTED = regex(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_BETWEEN = ("", ",", "and", ", and", "&&", ";", "+")
_SEVERAL = regex(
    r"(?:[,;+&]|\band\b|`)[ \t]*(?:manual|tasks)\b|\b(?:manual|tasks)[ \t]*(?:[,;+&]|and\b)", re.IGNORECASE
)
_LONGEST = 10_000
_SHOWN = 60

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
_BOLD = r"(?:\*\*|__)"
_FIELD = regex(
    rf"(?:[-*+][ \t]+)?{_BOLD}[ \t]*({_NAMES})[ \t]*(?::[ \t]*{_BOLD}|{_BOLD}[ \t]*:)(.*)|({_NAMES})[ \t]*:(.*)",
    re.IGNORECASE,
)
_ANY = regex(rf"(?:[-*+][ \t]+)?{_BOLD}[ \t]*([A-Za-z][\w \t-]{{0,40}}?)[ \t]*(?::[ \t]*{_BOLD}|{_BOLD}[ \t]*:)")
_KNOWN = tuple(_FIELDS)
_FIRST = frozenset("*_-+avidpAVIDP")
"""What a line with a field can begin with."""
_ITEM = regex(r"[ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+(?:\[[ xX]?\](?:[ \t]+|$))?(.*)")
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


# How a story is verified


class Malformed(Exception):
    """A verification that cannot be used; `str()` says why."""


class Verification(Struct, frozen=True):
    """What was read."""

    check: StoryCheck | None
    problem: str = ""
    warnings: tuple[tuple[int, str], ...] = ()
    """Line and message."""


class _Part:
    """One of the checks while it is read."""

    def __init__(self, kind: str = "") -> None:
        self.kind = kind
        self.command = ""
        self.fields: dict[str, object] = {}
        self.criteria: list[str] = []

    def done(self, criteria: tuple[str, ...]) -> StoryCheck:
        kind = self.kind or "command"
        if kind != "command" and (self.command or self.fields):
            raise Malformed(f"a check of the type `{kind}` takes no command")
        if kind == "tasks":
            return StoryCheck("tasks")
        if kind == "manual":
            return StoryCheck("manual", criteria=tuple(self.criteria) or criteria)
        if not self.command:
            raise Malformed("a check names no command: `- command: npm test`")
        return StoryCheck("command", (Check(run=self.command, **self.fields),))  # type: ignore[arg-type]


class _VerificationReader:
    """Goes through the lines once."""

    def __init__(self) -> None:
        self.parts: list[_Part] = []
        self.warnings: list[tuple[int, str]] = []
        self.is_after_gap = False
        self.lists_criteria = -1
        """The indentation of a line `- criteria:` whose items follow."""

    def line(self, number: int, line: Line) -> bool:
        """Read a line; False when it does not belong to the verification any more."""
        text = line.text
        if line.kind:
            return self._code(line)
        if not text.strip():
            self.is_after_gap = True
            return True
        bullet = _BULLET.match(text)
        if not bullet and text[0] not in " \t":
            if self.is_after_gap and self.parts:
                return False
            self.value(text.strip(), number)
        elif bullet:
            self._entry(number, text[bullet.end() :].strip(), columns(bullet[1]))
        else:
            self._continued(number, text)
        self.is_after_gap = False
        return True

    def _code(self, line: Line) -> bool:
        """A block of code with one command in it."""
        if line.kind == "heading":
            return False
        if self.is_after_gap and self.parts:
            return False
        if line.kind == "fence":
            self.parts.append(_Part("command"))
        elif (command := line.text.strip()) and not command.startswith(("```", "~~~")):
            if self.parts[-1].command:
                raise Malformed("a block of code holds one command: list several as `- command:` lines")
            self.parts[-1].command = command
        return True

    def value(self, text: str, number: int) -> None:
        """What stands in the line of the word itself, or in one under it that is no list."""
        key = _KEY.fullmatch(text)
        if key and key[1].lower() in _KEYS:
            return self._set(number, key[1].lower(), (key[2] or "").strip(), 0)
        word = text.strip("`*_ .").lower()
        if word in ("manual", "tasks"):
            self.parts.append(_Part(word))
            return None
        if len(text) > _LONGEST:
            raise Malformed(f"`{_cut(text)}` is too long for a command")
        found = list(_QUOTED.finditer(text))
        between = [text[one.end() : two.start()].strip() for one, two in pairwise(found)]
        if not found or text[: found[0].start()].strip() or text[found[-1].end() :].strip(" ."):
            raise Malformed(f"{_shown(text)} is not a command in backticks, `manual` or `tasks`{_combined(text)}")
        if any(one not in _BETWEEN for one in between):
            raise Malformed(f"{_shown(text)} has more than commands in it: list them as `- command:` lines")
        for one in found:
            self._part("command").command = one[2].strip()
        return None

    def _entry(self, number: int, text: str, indent: int) -> None:
        is_inside = indent > self.lists_criteria >= 0
        key = _KEY.fullmatch(text)
        if key and key[1].lower() in _KEYS and not is_inside:
            return self._set(number, key[1].lower(), (key[2] or "").strip(), indent)
        if is_inside or (self.parts and self.parts[-1].kind == "manual" and not _is_check(text)):
            self.parts[-1].criteria.append(text)
            return None
        self.lists_criteria = -1
        return self.value(text, number)

    def _continued(self, number: int, text: str) -> None:
        """An indented line without a bullet: `key: value` as in YAML, or more of a criterion."""
        key = _KEY.fullmatch(text.strip())
        if key and key[1].lower() in _KEYS:
            return self._set(number, key[1].lower(), (key[2] or "").strip(), columns(text))
        if self.parts and self.parts[-1].criteria:
            self.parts[-1].criteria[-1] += f" {text.strip()}"
            return None
        return self.value(text.strip(), number)

    def _set(self, number: int, key: str, value: str, indent: int) -> None:
        self.lists_criteria = -1
        if key == "type":
            self._type(value)
        elif key == "command":
            self._command(value)
        elif key in ("criteria", "manual"):
            part = self.parts[-1] if self.parts and self.parts[-1].kind == "manual" else self._part("manual")
            part.criteria += [value] if value else []
            self.lists_criteria = indent
        elif key == "retries":
            self.warnings.append((number, "`retries` is for tasks: a story is verified once"))
        elif key != "checks":
            self._field(key, value)

    def _type(self, value: str) -> None:
        kind = value.strip("`*_ ").lower()
        if kind not in _KINDS:
            raise Malformed(f"`type: {_cut(value)}` is not one of {', '.join(_KINDS)}")
        if kind != "composite":
            self._part(kind)

    def _command(self, value: str) -> None:
        command = unquoted(value)
        if not command:
            raise Malformed("`command` names no command")
        last = self.parts[-1] if self.parts else None
        part = last if last and last.kind in ("", "command") and not last.command else self._part("command")
        part.kind, part.command = "command", command

    def _field(self, key: str, value: str) -> None:
        last = self.parts[-1] if self.parts else self._part("")
        if key in last.fields or (key == "expected" and {"exit", "contains", "matches"} & last.fields.keys()):
            raise Malformed(f"`{key}` is given twice for one check")
        if key == "timeout":
            seconds = durations.parse(value.strip("`"))
            if not seconds:
                raise Malformed(f"`timeout: {_cut(value)}` is not {durations.explain(value)} such as 120s")
            last.fields["timeout"] = seconds
            return
        try:
            last.fields.update(expectation(unquoted(value)))
        except ValueError as error:
            raise Malformed(f"{error} ({EXPECTED})") from None

    def _part(self, kind: str) -> _Part:
        self.lists_criteria = -1
        self.parts.append(_Part(kind))
        return self.parts[-1]


def read_verification(
    value: str, number: int, lines: Iterable[tuple[int, Line]], criteria: tuple[str, ...]
) -> Verification:
    """Read a verification; `criteria` are those of the story, which a person looks at unless it names others."""
    reader = _VerificationReader()
    try:
        if value:
            reader.value(value, number)
        for at, line in lines:
            if not reader.line(at, line):
                break
        if not reader.parts:
            raise Malformed("it names neither a command, nor `manual`, nor `tasks`")
        parts = tuple(part.done(criteria) for part in reader.parts)
    except Malformed as error:
        return Verification(None, str(error), tuple(reader.warnings))
    return Verification(
        parts[0] if len(parts) == 1 else StoryCheck("composite", parts=parts), "", tuple(reader.warnings)
    )


def _is_check(text: str) -> bool:
    """Whether an item of a list is a check of its own, and not something to look at."""
    return text.strip("`*_ .").lower() in ("manual", "tasks") or bool(_QUOTED.fullmatch(text))


def _combined(text: str) -> str:
    """How several checks are written, if that is what a text looks like."""
    is_several = _SEVERAL.search(_QUOTED.sub("`", text)) is not None
    return ": several are a list, such as `- command: npm test`, then `- manual`" if is_several else ""


def _shown(text: str) -> str:
    text = text.strip()
    return misspelt.quoted(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def _cut(text: str) -> str:
    text = text.strip().strip("`")
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


# The PRD


class Prd(Struct, frozen=True):
    """The stories of a text in their order, and what is odd about them."""

    stories: tuple[Story, ...]
    warnings: tuple[PlanWarning, ...]
    twice: tuple[tuple[str, int, int], ...] = ()
    """Ids that several stories have, with the line of the first one and of the other."""


class _Field:
    """A field of a story: what follows its name, and the lines under it."""

    def __init__(self, value: str, number: int) -> None:
        self.value = value.strip()
        self.number = number
        self.lines: list[tuple[int, Line]] = []

    def texts(self, *, lists_ids: bool = False) -> Iterator[str]:
        """Its value, or the list or paragraph under it; a line that goes on where a comma ends one, too."""
        if self.value:
            yield self.value
        last, is_gap = self.value, False
        for _, line in self.lines:
            text = line.text
            if line.kind or (lists_ids and item_ids.list_is_over(text)):
                return
            if not text.strip():
                if self.value:
                    return
                is_gap = bool(last)
                continue
            goes_on = bool(_ITEM.match(text)) or text[0] in " \t" or last.endswith(",")
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
            self._doubt(f"{id} has no title")
        if not (criteria or tasks or "verification" in self.fields):
            self._doubt(f"{id} names no criteria, no verification and no tasks")
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
            name, value = self._named(line)
            if name:
                field, is_intro = _Field(value, number), False
                self._keep(name, field)
            elif near := self._nearly(line):
                field, is_intro = None, False
                self._unread(*near, number)
            elif line.kind == "heading":
                field, is_intro = None, False
            elif field:
                field.lines.append((number, line))
            elif is_intro and not line.kind:
                self.intro.append(line.text)
            if not name and not line.kind:
                suspects += [(message, number) for message in misspelt.unread_in(line.text)]
        if "verification" not in self.fields:
            for message, number in suspects:
                self._unreadable(message, number)

    def _nearly(self, line: Line) -> tuple[str, str] | None:
        """A name that is not one of a field, and the field that is probably meant."""
        if line.kind == "heading":
            name = line.text.strip().strip("#").partition(":")[0].strip(" \t*_")
        else:
            found = _ANY.match(line.text) if not line.kind and line.text[:1] in _FIRST else None
            name = found[1] if found else ""
        near = misspelt.field_meant(name, _KNOWN) if name else ""
        return (name, near) if near else None

    def _unread(self, name: str, near: str, number: int) -> None:
        if near == misspelt.VERIFICATION:
            self._unreadable(misspelt.unread_field(name, near), number)
        else:
            self.warnings.append(PlanWarning(misspelt.unread_field(name, near), number))

    def _unreadable(self, message: str, number: int) -> None:
        if not self.problem:
            self.problem, self.problem_number = message, number

    def _named(self, line: Line) -> tuple[str, str]:
        """The field that begins in a line, and what follows its name there."""
        if line.kind == "heading":
            title = line.text.strip().strip("#").strip()
            name, _, value = title.partition(":")
            return _FIELDS.get(plain(name), ""), value.strip(" \t*_")
        if line.kind or line.text[:1] not in _FIRST:
            return "", ""
        found = _FIELD.match(line.text)
        if not found:
            return "", ""
        return _FIELDS[" ".join((found[1] or found[3]).lower().split())], found[2] or found[4] or ""

    def _keep(self, name: str, field: _Field) -> None:
        if name not in self.fields:
            self.fields[name] = field
        elif name == "verification":
            self.problem = "it has two verifications"
        else:
            self.warnings.append(PlanWarning("this is given twice, and only the first one counts", field.number))

    def _doubt(self, message: str) -> None:
        self.warnings.append(PlanWarning(message, self.number))

    def _criteria(self) -> Iterator[str]:
        field = self.fields.get("criteria")
        current = ""
        for text in field.texts() if field else ():
            item = _ITEM.match(text)
            if item or not current:
                if current:
                    yield current
                current = (item[1] if item else text).strip()
            else:
                current += f" {text.strip()}"
        if current:
            yield current

    def _verification(self, criteria: tuple[str, ...]) -> StoryCheck | None:
        field = self.fields.get("verification")
        if field is None:
            return None
        found = read_verification(field.value, field.number, field.lines, criteria)
        self.problem = self.problem or found.problem
        self.warnings += [PlanWarning(message, number) for number, message in found.warnings]
        return None if self.problem else found.check

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
