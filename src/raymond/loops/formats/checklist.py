"""Lists of checkboxes as other tools keep them: fix_plan.md, and the plans of ralphex."""

import re
from collections.abc import Iterator

from msgspec import Struct

from raymond.digests import sha256
from raymond.loops.formats import document
from raymond.loops.formats.document import Line
from raymond.loops.formats.foreign_plan import ForeignPlan, ForeignStory, ForeignTask, Unreadable
from raymond.loops.formats.item import Doubt
from raymond.patterns import regex

BOX = regex(r"([ \t]*)(?:[-*+]|[0-9]{1,9}[.)])[ \t]+\[([ xX])\](?:[ \t]+(.*)|$)")
TASK = regex(r"(?:Task|Iteration)[ \t]+([^:]+?)[ \t]*:[ \t]*(.*)", re.IGNORECASE)
_NUMBERED = regex(
    r"(?:Task|Iteration)[ \t]+#?([0-9]{1,9}(?:\.[0-9]{1,9})*[a-z]?)"
    r"(?:(?:[ \t]*:[ \t]*|\.[ \t]+|[ \t]+[–—-][ \t]+)(.*)|\.?$)",
    re.IGNORECASE,
)
"""The same as people write it: `Task 3`, `Task 3 - Title`, or at the second level."""
_ITEM = regex(r"[ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(.*)")
_DESCRIBES = regex(r"\[\s*[ xX]?\s*\]")
"""What ralphex takes for a description of the format, not for work."""
_CODE = regex(r"`([^`\n]+)`")
_RANKS = {"high": 1, "medium": 2, "low": 3}
_VALIDATION = "validation commands"
_DIGITS = 8


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
    doubts = []
    for box in _boxes(text):
        area = " ".join(box.area.split())
        digest = sha256(f"{area}\0{box.title}".casefold().encode("utf-8", "replace")).hexdigest()
        is_alike = digests.get(digest[:_DIGITS], digest) != digest  # another one of thousands begins as this one
        key = digest if is_alike else digest[:_DIGITS]
        if key in found:
            doubts.append(Doubt("this is there twice, and only the first one counts", box.line))
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
    return ForeignPlan(_first_title(text), tuple(found.values()), doubts=tuple(doubts))


def _rank(area: str) -> int:
    return next((rank for word, rank in _RANKS.items() if word in area.casefold().split()), 1)


def _boxes(text: str) -> Iterator[_Box]:
    box: _Box | None = None
    indent, area = 0, ""
    for number, line in _numbered(text):
        found = None if line.kind else BOX.match(line.text)
        if line.kind == "heading":
            if box:
                yield box
            box, area = None, _heading(line.text)
        elif found and (not box or _columns(found[1]) <= indent):
            if box:
                yield box
            indent = _columns(found[1])
            title = _plain(found[3] or "")
            box = _Box(title, number, area, found[2] != " ", [], [], []) if title else None
        elif found and box:
            inner = [_plain(found[3])] if found[3] else []
            box.inner += inner
            box.ticked += inner if found[2] != " " else []
        elif box and (line.kind or line.text.startswith((" ", "\t"))):
            box.text.append(line.text.strip())
    if box:
        yield box


def read_ralphex(text: str) -> ForeignPlan:
    """A plan of ralphex as one story, with a task for each `### Task N: Title`."""
    title, said, commands = _first_title(text), {"overview": "", "context": ""}, []
    tasks: dict[str, ForeignTask] = {}
    doubts: list[Doubt] = []
    for number, line, rest in _sections(text):
        name, level = _heading(line.text), _level(line.text)
        if found := _begun(line):
            task = _task(found[1], found[2] or "", rest)
            if task.key in tasks:
                doubts.append(Doubt(f"there are two tasks {task.key}, and only the first one counts", number))
            tasks.setdefault(task.key, task)
        elif document.plain(name) == _VALIDATION:
            commands += list(_commands(number, rest, doubts))
        elif level == 2 and (word := document.plain(name).partition(" ")[0]) in said:
            said[word] = said[word] or "\n".join(one.text for one in rest).strip()
    if not tasks:
        raise Unreadable("no heading is like `### Task 1: Title`")
    if not commands:
        doubts.append(Doubt("it has no `## Validation Commands`", 1))
    done = all(one.is_done for one in tasks.values())
    name = title.removeprefix("Plan:").strip() or "Plan"
    criteria = tuple(one.title for one in tasks.values())
    about = f"{said['overview']}\n\nContext:\n{said['context']}" if said["context"] else said["overview"]
    story = ForeignStory("plan", name, 1, tuple(tasks.values()), text=about.strip(), criteria=criteria, is_done=done)
    return ForeignPlan(name, (story,), tuple(dict.fromkeys(commands)), tuple(doubts))


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
    boxes = [found for line in lines if not line.kind and (found := BOX.match(line.text))]
    work = [one for one in boxes if one[3] and not _DESCRIBES.search(one[3])]
    said = [line.text for line in lines if line.kind or not BOX.match(line.text)]
    key = f"Task {' '.join(number.split())}"
    ticked = tuple(one[3].strip() for one in work if one[2] != " ")
    is_done = len(ticked) == len(work) > 0
    return ForeignTask(
        key,
        _plain(title) or key,
        "\n".join(said).strip(" \t\n-"),
        tuple(one[3].strip() for one in work),
        is_done,
        () if is_done else ticked,
    )


def _commands(number: int, lines: list[Line], doubts: list[Doubt]) -> Iterator[str]:
    for at, line in enumerate(lines, number + 1):
        if line.kind == "fenced":
            command = line.text.strip()
            if command and not command.startswith(("#", "```", "~~~")):
                yield command
        elif not line.kind and (item := _ITEM.match(line.text)):
            quoted = _CODE.findall(item[1])
            if len(quoted) == 1:
                yield quoted[0].strip()
            else:
                doubts.append(Doubt("there is not one command in backticks here, so this is left out", at))


def is_ralphex(text: str) -> bool:
    """Whether a text has the heading of a task of ralphex; one without a colon, and the commands of a plan."""
    headings = [line for _, line in _numbered(text) if line.kind == "heading"]
    has_commands = any(document.plain(_heading(one.text)) == _VALIDATION for one in headings)
    return any(TASK.fullmatch(_heading(one.text)) or (has_commands and _begun(one)) for one in headings)


def is_checklist(text: str) -> bool:
    """Whether a text has a checkbox."""
    return any(not line.kind and BOX.match(line.text) for _, line in _numbered(text))


def _numbered(text: str) -> Iterator[tuple[int, Line]]:
    return enumerate(document.lines(document.uncommented(text)[0]), 1)


def _heading(line: str) -> str:
    bare = line.removeprefix(document.BYTE_ORDER_MARK).strip().lstrip("#").strip()
    return _plain(bare)


def _first_title(text: str) -> str:
    headings, _ = document.outline(document.uncommented(text)[0])
    return next((_plain(one.title) for one in headings if one.level == 1 and one.title), "")


def _plain(text: str) -> str:
    """A title without the emphasis around all of it."""
    text = " ".join(text.split())
    for mark in ("**", "__"):
        if text.startswith(mark) and text.endswith(mark) and text.count(mark) == 2:
            return text[2:-2].strip()
    return text


def _columns(blanks: str) -> int:
    return len(blanks.expandtabs(4))
