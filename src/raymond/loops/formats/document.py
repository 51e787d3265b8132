"""A markdown text with the places of what is in it: headings, fences, lines, comments.

Whoever changes a text cuts and splices it by these offsets, so that whatever is not understood stays byte for byte. A
line ends at "\\n"; a "\\r" before it belongs to the ending, and one anywhere else is a character like others.

In a `Mask`, comments and code are blotted out: what is left is what counts, at the same offsets. A comment becomes
spaces. A block of code becomes marks: `OPENING` after the indentation of its first line, `INSIDE`, and `CLOSING`. A
comment at the beginning of a line ends with the line that closes it, or with the text. One in the middle of a line
has to be closed within its paragraph; if that is in another line, it takes the rest of that, too. So no line that
counts begins inside of a comment.
"""

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator

from msgspec import Struct

from raymond.patterns import regex

# Only lines that can begin a heading, or open or close a fence, are looked at: a long text costs one pass of `re`.
_MARKER = regex(r"^(?:\A\ufeff)?( {0,3})(#{1,6}(?=[ \t]|\r*(?:\n|\Z))|`{3,}|~{3,})([^\n]*)", re.MULTILINE)
_TICKS = regex("`+")
BYTE_ORDER_MARK = "\ufeff"
_EMPTY = ("", BYTE_ORDER_MARK)


class Heading(Struct, frozen=True):
    """A line such as `## Title`."""

    title: str
    level: int
    start: int
    marks: int
    """Where its `#` begin."""
    stop: int
    """Where the next line begins."""


class Fence(Struct, frozen=True):
    """A block of code with the lines that open and close it."""

    start: int
    stop: int
    closing: str
    """The line that would close it; empty when it is closed."""


class Section(Struct, frozen=True):
    """A heading and what is under it, up to the next heading of the same or a higher level."""

    title: str
    level: int
    start: int
    body: int
    """Where the line after the heading begins."""
    end: int


class Line(Struct):
    """One line; `text[start:stop]` holds its ending too. Not frozen: that would cost more than finding it."""

    start: int
    stop: int
    text: str
    """Without its ending."""
    kind: str = ""
    """`heading`, `fence` for the line that opens one, `fenced` for the rest of it, or nothing."""


def outline(text: str) -> tuple[list[Heading], list[Fence]]:
    """The headings outside of fences, and the fences, in their order."""
    headings: list[Heading] = []
    fences: list[Fence] = []
    opened: re.Match[str] | None = None
    for found in _MARKER.finditer(text):
        stop = min(found.end() + 1, len(text))
        if opened:
            if _closes(found, opened):
                fences.append(Fence(opened.start(), stop, ""))
                opened = None
        elif found[2][0] == "#":
            headings.append(Heading(_title(found[3]), len(found[2]), found.start(), found.start(2), stop))
        elif found[2][0] == "~" or "`" not in found[3]:
            opened = found
    if opened:
        fences.append(Fence(opened.start(), len(text), opened[1] + opened[2]))
    return headings, fences


def _closes(found: re.Match[str], opened: re.Match[str]) -> bool:
    # A run of the same character and at least the same length begins with the one that opened.
    return found[2].startswith(opened[2]) and not found[3].strip(" \t\r")


def _title(rest: str) -> str:
    rest = rest.strip()
    bare = rest.rstrip("#")
    return bare.rstrip() if not bare or bare[-1] in " \t" else rest


def plain(title: str) -> str:
    """A title as it is compared: without case, emphasis, a colon at its end and double spaces."""
    return " ".join(title.strip(" \t*_:").split()).casefold()


def find(text: str, title: str) -> Section | None:
    """The first section with this title, whatever its level."""
    headings, _ = outline(text)
    wanted = plain(title)
    for at, heading in enumerate(headings):
        if plain(heading.title) == wanted:
            ends = (later.start for later in headings[at + 1 :] if later.level <= heading.level)
            return Section(heading.title, heading.level, heading.start, heading.stop, next(ends, len(text)))
    return None


def lines(text: str, start: int = 0, end: int | None = None) -> Iterator[Line]:
    """The lines between two offsets, each of which begins a line or ends the text."""
    headings, fences = outline(text)
    end = len(text) if end is None else end
    titles = {heading.start for heading in headings}
    fence = iter(fences)
    block = next(fence, None)
    at = start
    while at < end:
        stop = text.find("\n", at, end) + 1 or end
        while block and block.stop <= at:
            block = next(fence, None)
        kind = "heading" if at in titles else ""
        if block and block.start <= at:
            kind = "fence" if block.start == at else "fenced"
        yield Line(at, stop, text[at:stop].rstrip("\r\n"), kind)
        at = stop


def fence(text: str) -> str:
    """`text` as a block of code: its fence is longer than any run of backticks inside."""
    run = "`" * max(3, 1 + max(map(len, _TICKS.findall(text)), default=0))
    ending = "" if not text or text.endswith("\n") else "\n"
    return f"{run}\n{text}{ending}{run}\n"


def open_fence(text: str) -> str:
    """The line that closes the fence in which `text` ends, or nothing when it ends outside of one."""
    _, fences = outline(text)
    return fences[-1].closing if fences else ""


def newline(text: str) -> str:
    """How the lines of `text` end, going by the first one."""
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"


def closing(text: str) -> str:
    """What to append so that the next text begins a line of its own, outside of any fence."""
    ending = newline(text)
    begun = "" if text in _EMPTY or text.endswith("\n") else ending
    run = open_fence(text)
    return f"{begun}{run}{ending}" if run else begun


def gap(text: str) -> str:
    """What to append so that the next text begins after an empty line, outside of any fence."""
    ending = newline(text)
    begun = closing(text)
    return begun if text in _EMPTY or (text + begun).endswith(("\n\n", "\n\r\n")) else begun + ending


def adapted(text: str, ending: str) -> str:
    """`text` with its lines ended by `ending`."""
    text = text.replace("\r\n", "\n")
    return text if ending == "\n" else text.replace("\n", ending)


# What counts


OPENING, INSIDE, CLOSING = "\x01", "\x02", "\x03"
_RESERVED = {ord(mark): "\x00" for mark in (OPENING, INSIDE, CLOSING)}
_START = regex(r"^(?:\A\ufeff)?( {0,3})(`{3,}|~{3,})([^\n]*)|<!--", re.MULTILINE)
_INDENTATION = regex(r"(?:\A\ufeff)?[ \t]*")
_HEADING = regex(r"(?:\A\ufeff)? {0,3}#{1,6}(?:[ \t\r\n]|\Z)")
_BREAK = regex(r"\n(?=[ \t\r]*(?:\n|\Z)| {0,3}#{1,6}(?:[ \t\r\n]|\Z)| {0,3}(?:```|~~~))")
_INK = regex(r"[^\r\n]+")


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

    def __init__(self, text: str, *, code: bool) -> None:
        self.text = text
        self.code = code
        """Whether code is blotted out, too."""
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
        if not self.code and end:
            return end.end(), True
        if not self.code:
            self.parts.append(self.text[self.at :])
            return len(self.text), False
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
    return _Masker(text, code=True).run()


def uncommented(text: str) -> tuple[str, int]:
    """`text` with blanks in the place of its comments, and where one begins that is never closed, or -1."""
    found = _Masker(text, code=False).run() if "<!--" in text else Mask(text, None, None, [])
    return found.text, -1 if found.comment is None else found.comment


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
