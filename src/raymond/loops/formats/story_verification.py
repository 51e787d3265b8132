"""The `Verification` of a story: what follows the word in its line, and the lines under it."""

import re
from collections.abc import Iterable
from itertools import pairwise

from msgspec import Struct

from raymond import durations
from raymond.language.check import EXPECTED, Check, expectation
from raymond.loops.formats import near_fields
from raymond.loops.formats.document import Line
from raymond.loops.formats.item_head import unquoted
from raymond.loops.formats.story import StoryCheck
from raymond.patterns import regex

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


class Malformed(Exception):
    """A verification that cannot be used; `str()` says why."""


class Verification(Struct, frozen=True):
    """What was read."""

    check: StoryCheck | None
    problem: str = ""
    doubts: tuple[tuple[int, str], ...] = ()
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


class _Reader:
    """Goes through the lines once."""

    def __init__(self) -> None:
        self.parts: list[_Part] = []
        self.doubts: list[tuple[int, str]] = []
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
            self._entry(number, text[bullet.end() :].strip(), _columns(bullet[1]))
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
            return self._set(number, key[1].lower(), (key[2] or "").strip(), _columns(text))
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
            self.doubts.append((number, "`retries` is for tasks: a story is verified once"))
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


def read(value: str, number: int, lines: Iterable[tuple[int, Line]], criteria: tuple[str, ...]) -> Verification:
    """Read a verification; `criteria` are those of the story, which a person looks at unless it names others."""
    reader = _Reader()
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
        return Verification(None, str(error), tuple(reader.doubts))
    return Verification(parts[0] if len(parts) == 1 else StoryCheck("composite", parts=parts), "", tuple(reader.doubts))


def _is_check(text: str) -> bool:
    """Whether an item of a list is a check of its own, and not something to look at."""
    return text.strip("`*_ .").lower() in ("manual", "tasks") or bool(_QUOTED.fullmatch(text))


def _columns(text: str) -> int:
    return len(text.expandtabs(4)) - len(text.expandtabs(4).lstrip(" "))


def _combined(text: str) -> str:
    """How several checks are written, if that is what a text looks like."""
    is_several = _SEVERAL.search(_QUOTED.sub("`", text)) is not None
    return ": several are a list, such as `- command: npm test`, then `- manual`" if is_several else ""


def _shown(text: str) -> str:
    text = text.strip()
    return near_fields.quoted(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def _cut(text: str) -> str:
    text = text.strip().strip("`")
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
