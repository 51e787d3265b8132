"""A markdown text with its comments and its code blotted out: what is left is what counts, at the same offsets.

A comment becomes spaces. A block of code becomes marks: `OPENING` after the indentation of its first line, `INSIDE`,
and `CLOSING`. A comment at the beginning of a line ends with the line that closes it, or with the text. One in the
middle of a line has to be closed within its paragraph; if that is in another line, it takes the rest of that, too. So
no line that counts begins inside of a comment.
"""

import re
from bisect import bisect_right
from collections import deque

from msgspec import Struct

from raymond.patterns import regex

OPENING, INSIDE, CLOSING = "\x01", "\x02", "\x03"
_RESERVED = {ord(mark): "\x00" for mark in (OPENING, INSIDE, CLOSING)}
_START = regex(r"^(?:\A\ufeff)?( {0,3})(`{3,}|~{3,})([^\n]*)|<!--", re.MULTILINE)
_INDENTATION = regex(r"(?:\A\ufeff)?[ \t]*")
_HEADING = regex(r"(?:\A\ufeff)? {0,3}#{1,6}(?:[ \t\r\n]|\Z)")
_BREAK = regex(r"\n(?=[ \t\r]*(?:\n|\Z)| {0,3}#{1,6}(?:[ \t\r\n]|\Z)| {0,3}(?:```|~~~))")
_INK = regex(r"[^\r\n]+")
_TICKS = regex("`+")


class Mask(Struct, frozen=True):
    """A text as it counts, and where something begins that is never closed."""

    text: str
    fence: int | None
    comment: int | None
    comments: list[tuple[int, int]]
    """Where those of several lines begin and end."""

    @property
    def open(self) -> int | None:
        """Where that begins of which all the rest of the text is part."""
        return self.comment if self.fence is None else self.fence

    def outside(self, at: int) -> int:
        """The beginning of a line at which something can be put that counts: `at`, or the next one to it."""
        if self.open is not None and at > self.open:
            return self.text.rfind("\n", 0, self.open) + 1
        number = bisect_right(self.comments, (at, 0)) - 1
        return max(at, self.comments[number][1]) if number >= 0 else at


class _Masker:
    """Goes through a text once. What it looks for ahead is remembered, so that no stretch is searched again."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.parts: list[str] = []
        self.at = 0
        """Up to here the text is in `parts`."""
        self.line = 0
        """Where the line of the last comment begins."""
        self.seen = 0
        self.spans: tuple[int, list[int], list[int]] = (-1, [], [])
        self.close = self.paragraph = -1
        self.comments: list[tuple[int, int]] = []

    def run(self) -> Mask:
        text, at = self.text, 0
        while found := _START.search(text, at):
            if found[2] is None:
                at, is_closed = self._comment(found.start())
                if not is_closed:
                    return self._mask(comment=found.start())
            elif found[2][0] == "`" and "`" in found[3]:
                at = found.end(2)
            else:
                at, is_closed = self._fence(found)
                if not is_closed:
                    return self._mask(fence=found.start(1))
        self.parts.append(text[self.at :])
        return self._mask()

    def _mask(self, fence: int | None = None, comment: int | None = None) -> Mask:
        return Mask("".join(self.parts), fence, comment, self.comments)

    def _blot(self, start: int, stop: int, mark: str) -> None:
        self.parts += [self.text[self.at : start], _INK.sub(lambda ink: mark * len(ink[0]), self.text[start:stop])]
        self.at = stop

    def _fence(self, found: re.Match[str]) -> tuple[int, bool]:
        """Blot out a block of code; where it ends, and whether it is closed."""
        run = found[2]
        end = re.compile(rf"^ {{0,3}}{run[0]}{{{len(run)},}}[ \t\r]*$", re.MULTILINE).search(self.text, found.end())
        first = min(found.end() + 1, len(self.text))
        self._blot(found.start(2), first, OPENING)
        if end is None:
            self._blot(first, len(self.text), INSIDE)
            return len(self.text), False
        stop = min(end.end() + 1, len(self.text))
        self._blot(first, end.start(), INSIDE)
        self._blot(end.start(), stop, CLOSING)
        return stop, True

    def _comment(self, start: int) -> tuple[int, bool]:
        """Blot out a comment; where to look on, and whether it is closed."""
        text = self.text
        self.line = text.rfind("\n", self.seen, start) + 1 or self.line
        self.seen = start
        if self.close <= start + 1:
            self.close = _found(text.find("-->", start + 2), text)
        indentation = _INDENTATION.match(text, self.line)
        if indentation and indentation.end() == start:
            stop = self._after(self.close)
        elif self._is_code(start) or self.close >= self._paragraph(start):
            return start + 4, True
        else:
            is_long = text.find("\n", start, self.close) >= 0
            stop = self._after(self.close) if is_long else self.close + 3
        self._blot(start, stop, " ")
        if text.find("\n", start, stop - 1) >= 0:
            self.comments.append((start, stop))
        return stop, self.close < len(text)

    def _after(self, at: int) -> int:
        return self.text.find("\n", at) + 1 or len(self.text)

    def _paragraph(self, start: int) -> int:
        """Where the paragraph ends in which a comment begins."""
        if _HEADING.match(self.text, self.line):
            return _found(self.text.find("\n", start), self.text)
        if self.paragraph < start:
            end = _BREAK.search(self.text, start)
            self.paragraph = end.start() if end else len(self.text)
        return self.paragraph

    def _is_code(self, start: int) -> bool:
        """Whether it stands between backticks."""
        line, starts, stops = self.spans
        if line != self.line:
            starts, stops = _code(self.text, self.line, _found(self.text.find("\n", start), self.text))
            self.spans = self.line, starts, stops
        at = bisect_right(starts, start) - 1
        return at >= 0 and start < stops[at]


def mask(text: str) -> Mask:
    """`text` as it counts, with the same length and the same lines."""
    if any(mark in text for mark in (OPENING, INSIDE, CLOSING)):
        text = text.translate(_RESERVED)
    return _Masker(text).run()


def _found(at: int, text: str) -> int:
    return len(text) if at < 0 else at


def _code(text: str, start: int, stop: int) -> tuple[list[int], list[int]]:
    """Where inline code begins and ends in a line."""
    runs = list(_TICKS.finditer(text, start, stop))
    same: dict[int, deque[int]] = {}
    for number, run in enumerate(runs):
        same.setdefault(len(run[0]), deque()).append(number)
    starts, stops = [], []
    number = 0
    while number < len(runs):
        others = same[len(runs[number][0])]
        while others and others[0] <= number:
            others.popleft()
        if others:
            starts.append(runs[number].start())
            number = others[0]
            stops.append(runs[number].end())
        number += 1
    return starts, stops
