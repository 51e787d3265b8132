"""The field `**Verification:**` of a task or a story: commands with what is expected of them, a person, or tasks."""

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from msgspec import Struct

from raymond import durations
from raymond.language.check import EXPECTED, Check, expectation
from raymond.loops.formats import document, misspelt, queue, queue_item
from raymond.loops.formats.document import Document, Line
from raymond.patterns import regex

KEYS = ("command", "expected", "timeout", "retries", "type", "criteria", "seal", "may")
_OF_TASKS = ("retries", "seal", "may")
_KINDS = ("command", "manual", "none")
_KINDS_OF_STORIES = ("command", "manual", "tasks", "composite")
_KEY = regex(
    rf"(?:\*\*|__|`)?({'|'.join(KEYS)}|manual|checks)(?:\*\*|__|`)?[ \t\xa0]*:(?:\*\*|__)?(?=[ \t\xa0]|\Z)",
    re.IGNORECASE,
)
_PLAIN = regex(rf"[-*+] ({'|'.join(KEYS)}):([ \t\xa0][^\n]*)(?:\n|\Z)")
"""What most lines of the field are like; the others are read by what else they may be."""
_MANUAL = regex(r"manual(?:ly)?\b[\s:–—-]*(.*)", re.IGNORECASE | re.DOTALL)
_EXIT = regex(r"exit(?:[ \t]{1,4}code)?[ \t]{0,4}:?[ \t]{0,4}([0-9]+)", re.IGNORECASE)
_OUTPUT = regex(r"output[ \t]{1,4}(contains|matches)[ \t]{1,4}(.*)", re.IGNORECASE | re.DOTALL)
_RETRIES = regex(r"[0-9]{1,3}")
_QUOTED = regex(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_BETWEEN = ("", ",", "and", ", and", "&&", ";", "+")
_SEVERAL = regex(
    r"(?:[,;+&]|\band\b|`)[ \t]*(?:manual|tasks)\b|\b(?:manual|tasks)[ \t]*(?:[,;+&]|and\b)", re.IGNORECASE
)
_LONGEST = 10_000
"""Characters of a command in a plan: an item with a longer one could not be handed on."""
_SHOWN = 60


class Part(Struct):
    """One of the checks."""

    kind: str = ""
    """`command`, `manual`, `tasks` or `none`; empty until it is known."""
    command: str = ""
    expected: dict[str, Any] | None = None
    timeout: float = 0.0
    criteria: list[str] = []

    @property
    def check(self) -> Check:
        """Its command."""
        return Check(run=self.command, timeout=self.timeout, **(self.expected or {}))


class Verification(Struct):
    """What the field says."""

    parts: list[Part] = []
    retries: int | None = None
    seal: list[str] = []
    may: list[str] = []
    problems: list[tuple[str, int]] = []
    """Why it cannot be used, and where."""
    warnings: list[tuple[str, int]] = []
    """What is odd, and where."""


class _Reader:
    """Goes through the lines of the field. A story may have several checks, a task has one."""

    key = ""
    """What the last line set."""
    indent = 0
    is_whole = False
    """Whether that is in backticks, so that it ends where they do."""
    block: Part | None = None
    """The check whose command is in the block of code that is being read."""
    is_apart = False
    """Whether an empty line came last."""

    def __init__(self, found: Document, at: int, *, of_story: bool) -> None:
        self.document = found
        self.at = at
        self.of_story = of_story
        self.found = Verification()
        self.points: list[tuple[str, int]] = []
        """Lines that set nothing: criteria, if a person judges."""

    def problem(self, message: str, at: int) -> None:
        self.found.problems.append((message, at))

    def warn(self, message: str, at: int) -> None:
        self.found.warnings.append((message, at))

    @property
    def last(self) -> Part | None:
        return self.found.parts[-1] if self.found.parts else None

    def part(self, kind: str) -> Part:
        """Another check; one whose kind was not known yet is it."""
        last = self.last
        if last is None or last.kind:
            last = self._open()
        last.kind = kind
        return last

    # Lines

    def plain(self, at: int, stop: int) -> int:
        """Read the plain lines with which the field begins; where the first other one does."""
        counted = self.document.counted
        while found := _PLAIN.match(counted, at, stop):
            start = found.start(2)
            self._set(found[1], start, start + len(found[2].rstrip()))
            at = found.end()
        return at

    def line(self, line: Line) -> bool:
        """Read a line; False if it does not belong to the field any more."""
        text = line.text
        if line.kind:
            return self._code(line)
        if not text.strip():
            self.is_apart = True
            return True
        point = document.point(text)
        if not point and text[0] not in " \t\xa0" and self.is_apart and self.found.parts:
            return False
        self.is_apart = False
        indent = point.indent if point else document.columns(text)
        at = point.at if point else len(text) - len(text.lstrip())
        key = _KEY.match(text, at)
        if point and self.key == "criteria" and indent > self.indent:
            self._criterion(text[at:])
        elif key and (point or indent):
            self.indent = indent
            self._set(key[1].lower(), line.start + key.end(), line.start + len(text.rstrip()))
        elif point:
            self._entry(text[at:].strip(), line.start + at)
        else:
            self._more(text.strip(), line.start + at)
        return True

    def _code(self, line: Line) -> bool:
        """A block of code with one command in it."""
        opened = self.document.open_fence
        if line.kind == "heading" or (self.is_apart and self.found.parts) or (opened and opened.start <= line.start):
            return False
        self.is_apart = False
        if line.kind == "fence":
            self.block = self.part("command")
        elif self.block and (command := line.text.strip()) and not command.startswith(("```", "~~~")):
            if self.block.command:
                several = "list several as `- command:` lines" if self.of_story else _JOIN
                self.problem(f"a block of code holds one command: {several}", line.start)
            self.block.command = command
        return True

    def _entry(self, text: str, at: int) -> None:
        """An item of the list that sets nothing."""
        self.key = ""
        is_check = text.strip("`*_ .").lower() in ("manual", "tasks") or bool(_QUOTED.fullmatch(text))
        if self.last and self.last.kind == "manual" and not (self.of_story and is_check):
            self._criterion(text)
        elif self.of_story or is_check:
            self.value(text, at)
        else:
            self.points.append((text, at))

    def _more(self, text: str, at: int) -> None:
        """A line that is no item of a list: more of the one before, or a check."""
        if self.key == "criteria" and self.last and self.last.criteria:
            self.last.criteria[-1] += f" {text}"
        elif self.key in ("command", "expected") and not self.is_whole:
            self.problem(f"its `{self.key}` continues in the next line: write it in one line", at)
        elif self.of_story or _QUOTED.fullmatch(text):
            self.value(text, at)
        elif "`" in text and self.last and self.last.command:
            self.problem(f"{misspelt.quoted(_cut(text))} is not read: {_ONE}", at)
        else:
            self.points.append((text, at))

    def value(self, text: str, at: int) -> None:
        """A check in a line of its own, or in that of the field's name."""
        word = text.strip("`*_ .").lower()
        several = self.of_story and len(text) <= _LONGEST and _SEVERAL.search(_QUOTED.sub("`", text))
        self.key = ""
        if key := _KEY.match(text):
            self._set(key[1].lower(), at + key.end(), at + len(text))
        elif word in ("manual", "tasks"):
            self.part(word)
        elif not self.of_story and queue.is_nothing(text):
            self.part("none")
        elif (manual := _MANUAL.match(text)) and not several:
            told = manual[1].strip()
            self.part("manual")
            self._criterion(told[1:-1] if told[:1] == "(" and told[-1:] == ")" else told)
        elif len(text) > _LONGEST:
            self.problem(f"it has more than {_LONGEST:,} characters: put it into a script", at)
        else:
            self._commands(text, at)

    def _commands(self, text: str, at: int) -> None:
        found = list(_QUOTED.finditer(text))
        if not found or text[: found[0].start()].strip() or text[found[-1].end() :].strip(" ."):
            kinds = ", `manual` or `tasks`" if self.of_story else " or `manual`"
            several = self.of_story and _SEVERAL.search(_QUOTED.sub("`", text))
            more = ": several are a list, such as `- command: npm test`, then `- manual`" if several else ""
            self.problem(f"{misspelt.quoted(_cut(text))} is not a command in backticks{kinds}{more}", at)
        elif any(text[one.end() : two.start()].strip() not in _BETWEEN for one, two in pairwise(found)):
            self.problem(
                f"{misspelt.quoted(_cut(text))} has more than commands in it: list them as `- command:` lines", at
            )
        else:
            for one in found:
                self.part("command").command = one[2].strip()
            self.key, self.is_whole = "command", True

    # Keys

    def _set(self, key: str, start: int, stop: int) -> None:
        raw, value = self.document.text[start:stop].strip(), self.document.counted[start:stop].strip()
        self.key = "criteria" if key == "manual" else key
        self.is_whole = raw[:1] == "`" and queue_item.unquoted(raw) != raw
        if key in ("command", "expected") and raw != value:
            self.problem(f"there is a comment in its `{key}`: put the {key} in backticks", start)
        elif key in ("criteria", "manual"):
            self._judged(value, is_kind=key == "manual" or self.of_story)
        elif self.of_story and key in _OF_TASKS:
            self.warn(f"`{key}` is for tasks", start)
        elif key != "checks":
            _SETTERS[key](self, value, start)

    def _judged(self, value: str, *, is_kind: bool) -> None:
        if is_kind and not (self.last and self.last.kind == "manual"):
            self.part("manual")
        elif not self.last:
            self._open()
        self._criterion(value)

    def _criterion(self, text: str) -> None:
        self.key = "criteria"
        if text.strip() and self.last:
            self.last.criteria.append(text.strip())

    def _command(self, value: str, at: int) -> None:
        last = self.last
        is_open = last and last.kind in ("", "command") and not last.command
        part = last if last and is_open else self.part("command")
        part.kind, part.command = "command", queue_item.unquoted(value)

    def _type(self, value: str, at: int) -> None:
        kind, kinds = value.strip("`*_ ").lower(), _KINDS_OF_STORIES if self.of_story else _KINDS
        if kind not in kinds:
            self.problem(f"`type: {_cut(value)}` is not one of {', '.join(kinds)}", at)
        elif kind == "command" and not self.of_story and self.last:
            self.last.kind = self.last.kind or kind
        elif kind != "composite":
            self.part(kind)

    def _expected(self, value: str, at: int) -> None:
        part = self.last or self._open()
        if part.expected is not None:
            self.problem("`expected` is given twice", at)
            return
        value = queue_item.unquoted(value)
        if code := _EXIT.fullmatch(value):
            value = code[1]
        elif output := _OUTPUT.fullmatch(value):
            value = f"output {output[1].lower()} {output[2]}"
        part.expected = {}
        try:
            part.expected = expectation(value)
        except ValueError as error:
            self.problem(f"{error} ({EXPECTED})" if value else "its `expected` is empty", at)

    def _timeout(self, value: str, at: int) -> None:
        part, value = self.last or self._open(), value.strip("`").strip()
        seconds = durations.parse(value)
        if not seconds:
            self.warn(f"`{_cut(value)}` is not {durations.explain(value)} such as 120s, so the default counts", at)
        elif part.timeout:
            self.warn("`timeout` is given twice, and only the first one counts", at)
        else:
            part.timeout = seconds

    def _retries(self, value: str, at: int) -> None:
        value = value.strip("`").strip()
        if not _RETRIES.fullmatch(value):
            self.warn(f"`{_cut(value)}` is not a number of retries, so the default counts", at)
        elif self.found.retries is not None:
            self.warn("`retries` is given twice, and only the first one counts", at)
        else:
            self.found.retries = int(value)

    def _seal(self, value: str, at: int) -> None:
        self.found.seal += queue_item.globs(value)

    def _may(self, value: str, at: int) -> None:
        self.found.may += queue_item.globs(value)

    def _open(self) -> Part:
        part = Part()
        self.found.parts.append(part)
        return part

    # All of it

    def rest(self, lines: Iterable[Line]) -> Verification:
        """What all lines say together; these are the ones that were not read yet."""
        for line in lines:
            if not self.line(line):
                break
        found, last = self.found, self.last
        for text, at in self.points:
            if last and last.kind == "manual":
                last.criteria.append(text)
            else:
                self.warn(f"`{_cut(text)}` is not read: a verification has {', '.join(KEYS)}", at)
        kinds = {part.kind for part in found.parts}
        if not self.of_story and len(found.parts) > 1:
            twice = _ONE if kinds == {"command"} else "`type` is given twice"
            both = "it says both that there is none and a command" if "none" in kinds else _MANUAL_AND
            self.problem(both if "command" in kinds and len(kinds) > 1 else twice, self.at)
        elif not self.of_story and "tasks" in kinds:
            self.problem("`tasks` is for stories: a task has a command, or is `manual`", self.at)
        elif not found.problems:
            for part in found.parts or [Part()]:
                self._whole(part)
        return found

    def _whole(self, part: Part) -> None:
        has_more = part.command or part.expected is not None
        if part.kind in ("", "command") and not part.command:
            self.problem("it names no command: add a line `- command: ...` or `- type: manual`", self.at)
        elif part.kind == "none" and has_more:
            self.problem("it says that there is none, and has more to say", self.at)
        elif part.kind in ("manual", "tasks") and has_more:
            self.problem(_MANUAL_AND if part.kind == "manual" else "a check of its tasks takes no command", self.at)


_JOIN = "join them with `&&`, or put them into a script"
_ONE = f"a task has one command: {_JOIN}"
_MANUAL_AND = "it is manual, and has a command"
_SETTERS = {
    "command": _Reader._command,
    "type": _Reader._type,
    "expected": _Reader._expected,
    "timeout": _Reader._timeout,
    "retries": _Reader._retries,
    "seal": _Reader._seal,
    "may": _Reader._may,
}


def read(found: Document, value: str, at: int, lines: Iterable[Line], *, of_story: bool) -> Verification:
    """The field that has this value at an offset, with the lines under it."""
    reader = _Reader(found, at, of_story=of_story)
    if value:
        reader.value(value, at)
    return reader.rest(lines)


def read_task(found: Document, value: str, at: int, start: int, stop: int) -> Verification:
    """The same for a task, whose lines are those between two offsets."""
    reader = _Reader(found, at, of_story=False)
    if value:
        reader.value(value, at)
    start = reader.plain(start, stop)
    return reader.rest(found.lines(start, stop) if start < stop else ())


def _cut(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
