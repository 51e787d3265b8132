"""The field `**Verification:**` of a task: a command with what is expected of it, or criteria for a person."""

import re
from typing import Any

from msgspec import Struct

from raymond import durations
from raymond.language.check import Check, expectation
from raymond.loops.formats import document, queue, queue_item
from raymond.patterns import regex

KEYS = ("command", "expected", "timeout", "retries", "type", "criteria", "seal", "may")
_KEY = regex(
    rf"([ \t\xa0]*)[-*+][ \t\xa0]+(?:\*\*|__|`)?({'|'.join(KEYS)})(?:\*\*|__|`)?[ \t\xa0]*:(?:\*\*|__)?", re.IGNORECASE
)
_POINT = regex(r"([ \t\xa0]*)[-*+](?:[ \t\xa0]+|\Z)(?:\[[ xX]\][ \t\xa0]+)?")
_MANUAL = regex(r"manual(?:ly)?\b[\s:–—-]*(.*)", re.IGNORECASE | re.DOTALL)
_EXIT = regex(r"exit(?:[ \t]{1,4}code)?[ \t]{0,4}:?[ \t]{0,4}([0-9]+)", re.IGNORECASE)
_OUTPUT = regex(r"output[ \t]{1,4}(contains|matches)[ \t]{1,4}(.*)", re.IGNORECASE | re.DOTALL)
_RETRIES = regex(r"[0-9]{1,3}")
_CODE = (document.OPENING, document.INSIDE, document.CLOSING)
_SHOWN = 60


class Verification(Struct):
    """What the field says."""

    check: Check | None = None
    is_manual: bool = False
    criteria: tuple[str, ...] = ()
    retries: int | None = None
    seal: tuple[str, ...] = ()
    may: tuple[str, ...] = ()
    problem: str = ""
    warnings: list[tuple[str, int]] = []
    """What is odd, and where."""


class _Reader:
    """Goes through the lines of the field."""

    def __init__(self, text: str, mask: str) -> None:
        self.text = text
        self.mask = mask
        self.found = Verification()
        self.values: dict[str, str] = {}
        self.criteria: list[list[str]] = []
        """The lines of each."""
        self.globs: dict[str, list[str]] = {"seal": [], "may": []}
        self.points: list[tuple[str, int]] = []
        """Lines of the list that have no key we know."""
        self.key = ""
        self.indent = 0
        self.is_whole = False
        """Whether the value of the key is in backticks, so that it ends where they do."""

    def problem(self, message: str, at: int) -> None:
        message = f"its check cannot be read: {message}"
        self.found.problem = self.found.problem or message
        self.found.warnings.append((message, at))

    def warn(self, message: str, at: int) -> None:
        self.found.warnings.append((message, at))

    def first(self, start: int, stop: int) -> None:
        """The rest of the line with the name of the field."""
        value = self.mask[start:stop].strip()
        if not value:
            return
        if manual := _MANUAL.match(value):
            self._take("type", "manual", start)
            if manual[1].strip():
                self.criteria.append([_unwrapped(manual[1])])
            self.key = "criteria" if manual[1].strip() else ""
        elif "`" in value and queue_item.unquoted(value) == value:
            self.problem("a command has to stand alone in its backticks", start)
        elif queue.is_nothing(value):
            self._take("type", "none", start)
        elif "`" not in value:
            self.problem(f"`{_cut(value)}` is not a command in backticks: write `- command: ...`", start)
        else:
            self._value("command", start, stop)

    def line(self, start: int, stop: int) -> None:
        line = self.mask[start:stop].rstrip()
        if not line or line.lstrip()[0] in _CODE:
            return
        key = _KEY.match(line)
        point = _POINT.match(line)
        if point and self.key == "criteria" and len(point[1].expandtabs(4)) > self.indent:
            self._criterion(line[point.end() :])
        elif key:
            self.indent = len(key[1].expandtabs(4))
            self._value(key[2].lower(), start + key.end(), start + len(line))
        elif point:
            self.key = ""
            self.points.append((line[point.end() :].strip(), start))
        elif self.key == "criteria" and self.criteria:
            self.criteria[-1].append(line.strip())
        elif self.key in ("command", "expected") and not self.is_whole:
            self.problem(f"its `{self.key}` goes on in the next line: write it in one, or put it in backticks", start)
        elif not self.key:
            self.points.append((line.strip(), start))

    def _value(self, key: str, start: int, stop: int) -> None:
        value, seen = self.text[start:stop].strip(), self.mask[start:stop].strip()
        self.key = key
        self.is_whole = value[:1] == "`" and queue_item.unquoted(value) != value
        if key in ("command", "expected"):
            if value != seen:
                self.problem(f"there is a comment in its `{key}`: put the {key} in backticks", start)
            seen = queue_item.unquoted(seen)
        if key == "criteria":
            self._criterion(seen)
        else:
            self._take(key, seen, start)

    def _criterion(self, text: str) -> None:
        if text.strip():
            self.criteria.append([text.strip()])

    def _take(self, key: str, value: str, at: int) -> None:
        bare = value.strip("`").strip()
        if key in self.globs:
            self.globs[key] += queue_item.globs(value)
        elif key in self.values:
            self._twice(key, at)
        elif key == "type" and bare.lower() not in ("command", "manual", "none"):
            self.warn(f"`{_cut(bare)}` is not a type of verification: it is `command` or `manual`", at)
        elif key == "timeout" and not durations.parse(bare):
            self.warn(f"`{_cut(bare)}` is not a duration such as 120s, so the default counts", at)
        elif key == "retries" and not _RETRIES.fullmatch(bare):
            self.warn(f"`{_cut(bare)}` is not a number of retries, so the default counts", at)
        else:
            self.values[key] = value if key in ("command", "expected") else bare.lower()

    def _twice(self, key: str, at: int) -> None:
        if key in ("command", "expected", "type"):
            self.problem(f"`{key}` is given twice", at)
        else:
            self.warn(f"`{key}` is given twice, and only the first one counts", at)

    def end(self, at: int) -> Verification:
        """What all lines say together."""
        found, values = self.found, self.values
        kind = values.get("type", "")
        found.retries = int(values["retries"]) if "retries" in values else None
        command = values.get("command", "")
        if kind == "manual":
            self._manual(at)
        elif not command and kind == "none":
            self._nothing(at)
        elif not command:
            self.problem("it names no command: add a line `- command: ...` or `- type: manual`", at)
        elif kind == "none":
            self.problem("it says both that there is none and a command", at)
        self._points()
        found.seal, found.may = tuple(self.globs["seal"]), tuple(self.globs["may"])
        found.criteria = tuple(map(" ".join, self.criteria))
        fields = self._expected(at)
        if command and not found.problem:
            found.check = Check(run=command, timeout=durations.parse(values.get("timeout", "")) or 0.0, **fields)
        return found

    def _manual(self, at: int) -> None:
        self.found.is_manual = True
        if "command" in self.values or "expected" in self.values:
            self.problem("it is manual, and has a command", at)

    def _nothing(self, at: int) -> None:
        if "command" in self.values or "expected" in self.values:
            self.problem("it says that there is none, and has more to say", at)

    def _points(self) -> None:
        for text, at in self.points:
            if self.found.is_manual:
                self._criterion(text)
            else:
                self.warn(f"`{_cut(text)}` is not read: a verification has {', '.join(KEYS)}", at)

    def _expected(self, at: int) -> dict[str, Any]:
        if "expected" not in self.values:
            return {}
        value = self.values["expected"]
        if code := _EXIT.fullmatch(value):
            value = code[1]
        elif output := _OUTPUT.fullmatch(value):
            value = f"output {output[1].lower()} {output[2]}"
        try:
            return expectation(value)
        except ValueError as error:
            self.problem(f"{error}" if value else "its `expected` is empty", at)
        return {}


def read(text: str, mask: str, start: int, stop: int, end: int) -> Verification:
    """The field whose value is `text[start:stop]`, and whose lines end at `end`."""
    reader = _Reader(text, mask)
    reader.first(start, stop)
    at = mask.find("\n", stop, end) + 1 or end
    while at < end:
        after = mask.find("\n", at, end) + 1 or end
        reader.line(at, after)
        at = after
    return reader.end(start)


def _unwrapped(text: str) -> str:
    text = text.strip()
    return text[1:-1].strip() if text[:1] == "(" and text[-1:] == ")" else text


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
