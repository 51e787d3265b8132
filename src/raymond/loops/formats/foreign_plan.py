"""Lists of work that other tools keep: what is in them, and how a PRD and a spec have it."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from raymond.digests import sha256
from raymond.loops.formats import document, foreign_text, prd, records, state_file, task_spec
from raymond.loops.formats.document import Document, Line, Point
from raymond.loops.formats.queue_item import PlanWarning
from raymond.loops.formats.state_file import Broken
from raymond.patterns import regex
from raymond.text import safe

_PROPOSED = regex(r"(?i)_+(proposed)_+")
_DEEPEST = 5

TASK = regex(r"(?:Task|Iteration)[ \t]+([^:]+?)[ \t]*:[ \t]*(.*)", re.IGNORECASE)
_NUMBERED = regex(
    r"(?:Task|Iteration)[ \t]+#?([0-9]{1,9}(?:\.[0-9]{1,9})*[a-z]?)"
    r"(?:(?:[ \t]*:[ \t]*|\.[ \t]+|[ \t]+[–—-][ \t]+)(.*)|\.?$)",
    re.IGNORECASE,
)
"""The same as people write it: `Task 3`, `Task 3 - Title`, or at the second level."""
_DESCRIBES = regex(r"\[\s*[ xX]?\s*\]")
"""What ralphex takes for a description of the format, not for work."""
_CODE = regex(r"`([^`\n]+)`")
_RANKS = {"high": 1, "medium": 2, "low": 3}
_VALIDATION = "validation commands"
_DIGITS = 8

USER_STORIES = "userStories"
_LINE = regex(r" in line ([0-9]+)$")
_WHITE = regex(r"[ \t\r\n]*")
_MOST = 9999
"""The highest priority that a story of ours has."""


class ForeignTask(Struct, frozen=True):
    """One step of a story."""

    key: str
    """What it is called in its file; the same each time it is read."""
    title: str
    text: str = ""
    criteria: tuple[str, ...] = ()
    is_done: bool = False
    """Its file says so."""
    ticked: tuple[str, ...] = ()
    """The criteria that are ticked in a task that is not done."""


class ForeignStory(Struct, frozen=True):
    """Something that is wanted."""

    key: str
    title: str
    line: int
    tasks: tuple[ForeignTask, ...]
    """At least one."""
    id: str = ""
    text: str = ""
    criteria: tuple[str, ...] = ()
    priority: int = 1
    is_done: bool = False
    depends_on: tuple[str, ...] = ()
    """Keys of other stories."""


class ForeignPlan(Struct, frozen=True):
    """All of a file."""

    title: str
    stories: tuple[ForeignStory, ...]
    commands: tuple[str, ...] = ()
    """What checks every task."""
    warnings: tuple[PlanWarning, ...] = ()


class Unreadable(Exception):
    """A file that is not what it should be; `str()` says why."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


# As a PRD and a spec have them


def import_mark(name: str, key: str) -> str:
    """The line by which something imported is found again."""
    return records.entry_mark(f"import {name}/{key}")


def as_title(text: str) -> str:
    """A title that is only a title: a word such as *proposed* would mean something to us."""
    return foreign_text.inline(_PROPOSED.sub(r"\1", text.replace("*", ""))).strip("# ") or "Untitled"


def as_story(
    id: str, one: ForeignStory, *, name: str, level: int, tasks: Sequence[str], depends_on: Sequence[str]
) -> str:
    """The section of a story, which its tasks verify."""
    lines = [f"{'#' * level} {id}: {as_title(one.title)}", import_mark(name, one.key), ""]
    lines += as_quotation(one.text)
    if one.criteria:
        lines += ["**Acceptance Criteria:**", *(f"- [ ] {as_criterion(text)}" for text in one.criteria), ""]
    lines += ["**Verification:** tasks", f"**Implemented by:** {', '.join(tasks)}", f"**Priority:** {one.priority}"]
    if depends_on:
        lines.append(f"**Depends on:** {', '.join(depends_on)}")
    return "\n".join([*lines, ""])


def as_task(id: str, one: ForeignTask, *, name: str, key: str, story: str, command: str) -> str:
    """The section of a task; without a command a person looks at its criteria."""
    status = task_spec.SHOWN["complete" if one.is_done else "planned"]
    lines = [f"## {id}. {as_title(one.title)}", import_mark(name, key), ""]
    lines += [f"**Status:** {status}", f"**Implements:** {story}", "**Verification:**"]
    if command:
        lines += [f"- command: {as_code(command)}", "- expected: 0"]
    else:
        criteria = one.criteria or (one.title,)
        lines += ["- type: manual", "- criteria:", *(f"  - {as_criterion(text)}" for text in criteria)]
    lines += ["", *as_quotation(one.text)]
    if command and one.criteria:
        lines += [*(f"> - [{'x' if text in one.ticked else ' '}] {as_criterion(text)}" for text in one.criteria), ""]
    return "\n".join(lines)


def as_head(id: str, about: str, source: str) -> str:
    """The beginning of a spec."""
    told = f": {as_title(about)}" if about else ""
    return f"# {id} Imported{told}\n\nImported from {foreign_text.code(source)}.\n"


def as_criterion(text: str) -> str:
    """A criterion as an item of a list: in bold, it could be a field, and half a pair of backticks would go on."""
    line = foreign_text.inline(text)
    line = line.replace("`", "'") if line.count("`") % 2 else line
    return f"\\{line}" if line.startswith(("*", "_")) else line


def as_quotation(text: str) -> list[str]:
    """Paragraphs as a quotation: a heading, a field or a fence in them is none."""
    if not text.strip():
        return []
    lines = foreign_text.unmarked(safe(text.replace("\r\n", "\n").replace("\r", "\n"))).strip().split("\n")
    return [*(f"> {line}".rstrip() for line in lines), ""]


def as_code(command: str) -> str:
    """A command in backticks, as `unquoted` reads it."""
    run = "`"
    while run in command:
        run += "`"
    blank = " " if len(run) > 1 else ""
    return f"{run}{blank}{command}{blank}{run}"


def one_command(commands: Sequence[str]) -> str:
    """Commands as one that is green when all of them are."""
    if len(commands) < 2:
        return commands[0] if commands else ""
    return " && ".join(f"({one})" if any(mark in one for mark in ";|&#") else one for one in commands)


def with_stories(text: str, stories: Sequence[str]) -> str:
    """A PRD with these sections at the end of its stories; an empty one begins with a title."""
    ending = document.newline(text)
    new = "\n".join(stories)
    if not text.strip("\ufeff \t\r\n"):
        return f"{text.strip()}# Product requirements\n\n## {prd.TITLE}\n\n{new}"
    at = _end(text)
    if at < 0:
        return text + Document(text).gap() + document.adapted(f"## {prd.TITLE}\n\n{new}", ending)
    before, after = text[:at], text[at:]
    return before + Document(before).gap() + document.adapted(new, ending) + (ending + after if after else "")


def _end(text: str) -> int:
    """Where the stories of a PRD end; -1 if it has no place for them."""
    found = Document(text).section(prd.TITLE)
    there = prd.read(text).stories
    if found and (not there or any(found.body <= one.start < found.end for one in there)):
        return found.end
    return max((one.end for one in there), default=-1)


def heading_level(text: str) -> int:
    """How deep the heading of another story of a PRD is."""
    there = prd.read(text).stories
    if there:
        line = text[there[-1].start :].removeprefix(document.BYTE_ORDER_MARK).lstrip(" ")
        return len(line) - len(line.lstrip("#"))
    found = Document(text).section(prd.TITLE)
    return min(found.level + 1, _DEEPEST) if found else 3


# Lists of checkboxes


class _Box(Struct):
    """A checkbox and what is under it."""

    title: str
    line: int
    area: str
    is_ticked: bool
    inner: list[str]
    ticked: list[str]
    """Those of them that are."""
    text: list[str]


def read_fix_plan(text: str) -> ForeignPlan:
    """The stories of a checklist: one for each box that is not under another one; headings are areas."""
    found: dict[str, ForeignStory] = {}
    digests: dict[str, str] = {}
    warnings = []
    for box in _boxes(text):
        area = " ".join(box.area.split())
        digest = sha256(f"{area}\0{box.title}".casefold().encode("utf-8", "replace")).hexdigest()
        is_alike = digests.get(digest[:_DIGITS], digest) != digest  # another one of thousands begins as this one
        key = digest if is_alike else digest[:_DIGITS]
        if key in found:
            warnings.append(PlanWarning("this is there twice, and only the first one counts", box.line))
            continue
        digests[key] = digest
        said = "\n".join(([f"Area: {area}", ""] if area else []) + box.text).strip()
        ticked = () if box.is_ticked else tuple(box.ticked)
        task = ForeignTask(key, box.title, said, tuple(box.inner), box.is_ticked, ticked)
        found[key] = ForeignStory(
            *(key, box.title, box.line, (task,)),
            text=said,
            criteria=task.criteria,
            priority=_rank(area),
            is_done=box.is_ticked,
        )
    if not found:
        raise Unreadable("no item begins with `- [ ]`")
    return ForeignPlan(_first_title(text), tuple(found.values()), warnings=tuple(warnings))


def _rank(area: str) -> int:
    return next((rank for word, rank in _RANKS.items() if word in area.casefold().split()), 1)


def _boxes(text: str) -> Iterator[_Box]:
    box: _Box | None = None
    indent, area = 0, ""
    for number, line in _numbered(text):
        found = _box(line)
        if line.kind == "heading":
            if box:
                yield box
            box, area = None, _heading(line.text)
        elif found and (not box or found.indent <= indent):
            if box:
                yield box
            indent = found.indent
            title = _plain(line.text[found.at :])
            box = _Box(title, number, area, found.tick != " ", [], [], []) if title else None
        elif found and box:
            inner = [_plain(line.text[found.at :])] if line.text[found.at :].strip() else []
            box.inner += inner
            box.ticked += inner if found.tick != " " else []
        elif box and (line.kind or line.text.startswith((" ", "\t"))):
            box.text.append(line.text.strip())
    if box:
        yield box


def read_ralphex(text: str) -> ForeignPlan:
    """A plan of ralphex as one story, with a task for each `### Task N: Title`."""
    title, said, commands = _first_title(text), {"overview": "", "context": ""}, []
    tasks: dict[str, ForeignTask] = {}
    warnings: list[PlanWarning] = []
    for number, line, rest in _sections(text):
        name, level = _heading(line.text), _level(line.text)
        if found := _begun(line):
            task = _task(found[1], found[2] or "", rest)
            if task.key in tasks:
                warnings.append(PlanWarning(f"there are two tasks {task.key}, and only the first one counts", number))
            tasks.setdefault(task.key, task)
        elif document.plain(name) == _VALIDATION:
            commands += list(_commands(number, rest, warnings))
        elif level == 2 and (word := document.plain(name).partition(" ")[0]) in said:
            said[word] = said[word] or "\n".join(one.text for one in rest).strip()
    if not tasks:
        raise Unreadable("no heading is like `### Task 1: Title`")
    if not commands:
        warnings.append(PlanWarning("it has no `## Validation Commands`", 1))
    done = all(one.is_done for one in tasks.values())
    name = title.removeprefix("Plan:").strip() or "Plan"
    criteria = tuple(one.title for one in tasks.values())
    about = f"{said['overview']}\n\nContext:\n{said['context']}" if said["context"] else said["overview"]
    story = ForeignStory("plan", name, 1, tuple(tasks.values()), text=about.strip(), criteria=criteria, is_done=done)
    return ForeignPlan(name, (story,), tuple(dict.fromkeys(commands)), tuple(warnings))


def _sections(text: str) -> Iterator[tuple[int, Line, list[Line]]]:
    """Each heading with the lines under it. In a task, headings of its own level and below are part of it."""
    head: tuple[int, Line] | None = None
    rest: list[Line] = []
    is_task = False
    for number, line in _numbered(text):
        if line.kind == "heading":
            begins = _begun(line) is not None
            is_note = is_task and _level(line.text) > 2 and not begins
            if not is_note:
                if head:
                    yield (*head, rest)
                head, rest, is_task = (number, line), [], begins
                continue
        rest.append(line)
    if head:
        yield (*head, rest)


def _begun(line: Line) -> re.Match[str] | None:
    """The number and title of the task that a heading begins."""
    name, level = _heading(line.text), _level(line.text)
    found = _NUMBERED.fullmatch(name) if level in (2, 3) else None
    return found or (TASK.fullmatch(name) if level == 3 else None)


def _level(line: str) -> int:
    bare = line.removeprefix(document.BYTE_ORDER_MARK).strip()
    return len(bare) - len(bare.lstrip("#"))


def _task(number: str, title: str, lines: list[Line]) -> ForeignTask:
    boxes = [(line.text[found.at :].strip(), found.tick != " ") for line in lines if (found := _box(line))]
    work = [(told, is_ticked) for told, is_ticked in boxes if told and not _DESCRIBES.search(told)]
    said = [line.text for line in lines if not _box(line)]
    key = f"Task {' '.join(number.split())}"
    ticked = tuple(told for told, is_ticked in work if is_ticked)
    is_done = len(ticked) == len(work) > 0
    return ForeignTask(
        key,
        _plain(title) or key,
        "\n".join(said).strip(" \t\n-"),
        tuple(told for told, _ in work),
        is_done,
        () if is_done else ticked,
    )


def _commands(number: int, lines: list[Line], warnings: list[PlanWarning]) -> Iterator[str]:
    for at, line in enumerate(lines, number + 1):
        if line.kind == "fenced":
            command = line.text.strip()
            if command and not command.startswith(("#", "```", "~~~")):
                yield command
        elif not line.kind and (item := document.point(line.text)):
            quoted = _CODE.findall(line.text, item.at)
            if len(quoted) == 1:
                yield quoted[0].strip()
            else:
                warnings.append(PlanWarning("there is not one command in backticks here, so this is left out", at))


def is_ralphex(text: str) -> bool:
    """Whether a text has the heading of a task of ralphex; one without a colon, and the commands of a plan."""
    headings = [line for _, line in _numbered(text) if line.kind == "heading"]
    has_commands = any(document.plain(_heading(one.text)) == _VALIDATION for one in headings)
    return any(TASK.fullmatch(_heading(one.text)) or (has_commands and _begun(one)) for one in headings)


def is_checklist(text: str) -> bool:
    """Whether a text has a checkbox."""
    return any(_box(line) for _, line in _numbered(text))


def _box(line: Line) -> Point | None:
    """The checkbox that a line begins with."""
    found = None if line.kind else document.point(line.text)
    return found if found and found.tick else None


def _numbered(text: str) -> Iterator[tuple[int, Line]]:
    return enumerate(Document(text).lines(), 1)


def _heading(line: str) -> str:
    bare = line.removeprefix(document.BYTE_ORDER_MARK).strip().lstrip("#").strip()
    return _plain(bare)


def _first_title(text: str) -> str:
    headings = Document(text).headings
    return next((_plain(one.title) for one in headings if one.level == 1 and one.title), "")


def _plain(text: str) -> str:
    """A title without the emphasis around all of it."""
    text = " ".join(text.split())
    for mark in ("**", "__"):
        if text.startswith(mark) and text.endswith(mark) and text.count(mark) == 2:
            return text[2:-2].strip()
    return text


# prd.json


class _Story:
    """Reads the fields of one story."""

    def __init__(self, fields: Any, at: int, line: int) -> None:
        self.place, self.line = f"{USER_STORIES}[{at}]", line
        if not isinstance(fields, dict):
            raise Unreadable(f"`{self.place}` is not an object", line)
        self.fields: dict[str, Any] = fields

    def wrong(self, name: str, what: str) -> Unreadable:
        return Unreadable(f"`{self.place}.{name}` is not {what}", self.line)

    def text(self, name: str) -> str:
        value = self.fields.get(name)
        if value is not None and not isinstance(value, str):
            raise self.wrong(name, "a text")
        return (value or "").strip()

    def texts(self, *names: str) -> tuple[str, ...]:
        name = next((one for one in names if self.fields.get(one) is not None), names[0])
        value = self.fields.get(name)
        if isinstance(value, str):
            value = [value]
        if value is not None and not isinstance(value, list):
            raise self.wrong(name, "a list of texts")
        for at, one in enumerate(value or ()):
            if not isinstance(one, str | int) or isinstance(one, bool):
                raise self.wrong(f"{name}[{at}]", "a text")
        return tuple(one for value in value or () if (one := str(value).strip()))

    def id(self) -> str:
        value = self.fields.get("id")
        if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
            raise self.wrong("id", "a text or a number")
        return str(value).strip()

    def passes(self) -> bool:
        value = self.fields.get("passes")
        if value is not None and not isinstance(value, bool):
            raise self.wrong("passes", "true or false")
        return value is True

    def priority(self) -> int:
        value = self.fields.get("priority")
        if value is None:
            return 1
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST:
            raise self.wrong("priority", f"a whole number from 0 to {_MOST}")
        return value

    def story(self) -> ForeignStory:
        id, described, notes = self.id(), self.text("description"), self.text("notes")
        title = self.text("title") or described.partition("\n")[0]
        if not title:
            raise Unreadable(f"`{self.place}` has no `title`", self.line)
        criteria, done = self.texts("acceptanceCriteria"), self.passes()
        said = "\n\n".join(one for one in (described, f"Notes: {notes}" if notes else "") if one)
        task = ForeignTask(id, title, said, criteria, done)
        depends = self.texts("dependsOn", "dependencies")
        return ForeignStory(
            id, title, self.line, (task,), id, described, criteria, self.priority(), done, depends_on=depends
        )


def read_ralph_prd(text: str) -> ForeignPlan:
    """The stories of a prd.json; `Unreadable` says what is wrong, and where."""
    try:
        fields = state_file.read(text)
    except Broken as error:
        line = _LINE.search(str(error))
        raise Unreadable(str(error).removesuffix(line[0] if line else ""), int(line[1]) if line else 1) from None
    stories = fields.get(USER_STORIES)
    if not isinstance(stories, list):
        raise Unreadable(f"it has no list `{USER_STORIES}`")
    lines = _lines(text, len(stories))
    found: dict[str, ForeignStory] = {}
    warnings = []
    for at, one in enumerate(stories):
        story = _Story(one, at, lines[at]).story()
        if story.key in found:
            warnings.append(
                PlanWarning(f"there are two stories {story.key}, and only the first one counts", story.line)
            )
        found.setdefault(story.key, story)
    for story in found.values():
        warnings += [
            PlanWarning(f"it depends on {one}, which is not there", story.line)
            for one in story.depends_on
            if one not in found
        ]
    return ForeignPlan(_title(fields), tuple(found.values()), warnings=tuple(warnings))


def _title(fields: dict[str, Any]) -> str:
    """What the file is about: the project, its branch."""
    names = [fields.get(name) for name in ("project", "branchName")]
    return ", ".join(" ".join(one.split()) for one in names if isinstance(one, str) and one.strip())


def _lines(text: str, count: int) -> list[int]:
    """The line in which each story begins; that of the list where nobody can tell."""
    at = text.find(f'"{USER_STORIES}"')
    opened = text.find("[", at)
    lines, last, number = [], 0, 1
    at = opened + 1
    decoder = json.JSONDecoder()
    try:
        for _ in range(count):
            at = _blanks(text, at)
            number, last = number + text.count("\n", last, at), at
            lines.append(number)
            at = _blanks(text, decoder.raw_decode(text, at)[1]) + 1
    except ValueError:
        pass
    return [*lines, *[text.count("\n", 0, opened) + 1] * (count - len(lines))]


def _blanks(text: str, at: int) -> int:
    found = _WHITE.match(text, at)
    return found.end() if found else at
