"""A markdown text, read once: its headings, its code, its comments, its lines, with the place of each.

An edit cuts and splices the text by these offsets, so what is not understood stays byte for byte. A line ends at "\\n";
a "\\r" before it belongs to the ending, and one anywhere else is a character like others.

`Document.counted` is the text as it counts, at the same offsets: a comment is blanks, and a block of code is marks,
`OPENING` after the indentation of its first line, then `INSIDE`, then `CLOSING`.

- A block of code begins with a fence that is indented by at most three blanks, and further in an item of a list. In an
  item it ends with the item at the latest.
- A comment at the beginning of a line ends with the line that closes it, or with the text. Within an item of a list it
  ends with the item at the latest.
- A comment in the middle of a line counts only if it is closed in its paragraph. If that is in another line, it takes
  the rest of that line, too. So no line that counts begins inside of a comment.
"""

import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator

from msgspec import Struct

from raymond.patterns import regex

BYTE_ORDER_MARK = "\ufeff"
OPENING, INSIDE, CLOSING = "\x01", "\x02", "\x03"
_RESERVED = {ord(mark): "\x00" for mark in (OPENING, INSIDE, CLOSING)}
_EMPTY = ("", BYTE_ORDER_MARK)
_DEEP = 3
"""Blanks before a fence that needs no list item around it."""

# Only what can begin a heading, code or a comment is looked at: a long text costs one pass of `re`. The line feed is
# part of the pattern, because a pattern that begins with `^` is tried at every character, which takes twice as long.
_BEGIN = r"(?: {0,3}(#{1,6})(?=[ \t]|\r*(?:\n|\Z))|([ \t]*)(`{3,}|~{3,})([^\n]*))"
_FIRST = regex(rf"\ufeff?{_BEGIN}")
_START = regex(rf"\n{_BEGIN}|<!--")
_START_WITHOUT_COMMENTS = regex(rf"\n{_BEGIN}")
_INDENTATION = regex(r"(?:\A\ufeff)?[ \t]*")
_HEADING = regex(r"(?:\A\ufeff)? {0,3}#{1,6}(?:[ \t\r\n]|\Z)")
_PARAGRAPH_END = regex(
    r"\n(?=[ \t\r]*(?:\n|\Z)| {0,3}#{1,6}(?:[ \t\r\n]|\Z)| {0,3}(?:```|~~~)"
    r"|[ \t]*(?:[-*+]|[0-9]{1,9}[.)])(?:[ \t\r\n]|\Z))"
)
_INDENTED = regex(r"^([ \t]*)(?:([-*+]|[0-9]{1,9}[.)])(?=[ \t\r\n]|\Z)|[^ \t\r\n])", re.MULTILINE)
_FIELD = (
    r"([ \xa0]{0,3}(?:[-*+][ \t]{1,4})?)(\*\*|__)[ \t]{0,4}([^\W\d_](?:[^\W_]|[ \t-]){0,40}?)[ \t]{0,4}"
    r"(?::[ \t]{0,4}\2|\2[ \t]{0,4}:)([^\n]*)"
)
FIELD = regex(_FIELD)
"""A line such as `**Status:** Planned`: what comes before the name, what makes it bold, the name, and the value."""
NEXT_FIELD = regex(rf"\n{_FIELD}")
"""The same with the end of the line before."""
_POINT = regex(r"([ \t\xa0]*)(?:[-*+]|[0-9]{1,9}[.)])(?:[ \t\xa0]+|\Z)(?:\[([ xX]?)\](?:[ \t\xa0]+|\Z))?")
_INK = regex(r"[^\r\n]+")
_TICKS = regex("`+")


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
    """The line that would close it; empty if the block is closed."""


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
    """As it counts, without its ending: blanks in the place of comments, code as it is."""
    kind: str = ""
    """`heading`, `fence` for the line that opens one, `fenced` for the rest of it, or nothing."""


class Document:
    """A text with the places of what is in it. Without `comments`, a comment is text like any other."""

    def __init__(self, text: str, *, comments: bool = True) -> None:
        scan = _Scan(text, comments=comments)
        scan.run()
        self.text = text
        self.counted = scan.counted()
        self._shown = scan.blotted(text, " ")
        self.fences: list[Fence] = scan.fences
        self.comments: list[tuple[int, int]] = scan.comments
        """Where each begins and ends."""
        self.open_comment = scan.open_comment
        """Where a comment begins of which the rest of the text is part."""
        self.unclosed: list[tuple[int, str]] = scan.unclosed
        """Where something begins that is never closed, and what is said about it."""
        self.headings = [self._heading(*found) for found in scan.headings]
        self._titles = {heading.start for heading in self.headings}
        self._endings: list[int] | None = None

    def _heading(self, start: int, marks: int, rest: int) -> Heading:
        stop = self.text.find("\n", rest) + 1 or len(self.text)
        return Heading(_title(self.counted[rest:stop]), rest - marks, start, marks, stop)

    @property
    def open_fence(self) -> Fence | None:
        """The block of code of which the rest of the text is part."""
        last = self.fences[-1] if self.fences else None
        return last if last and last.closing and last.stop == len(self.text) else None

    def section(self, title: str) -> Section | None:
        """The first section with this title, whatever its level."""
        wanted = plain(title)
        for at, heading in enumerate(self.headings):
            if plain(heading.title) == wanted:
                ends = (later.start for later in self.headings[at + 1 :] if later.level <= heading.level)
                end = next(ends, len(self.text))
                return Section(heading.title, heading.level, heading.start, heading.stop, end)
        return None

    def lines(self, start: int = 0, end: int | None = None) -> Iterator[Line]:
        """The lines between two offsets, each of which begins a line or ends the text."""
        text, shown, fences, titles = self.text, self._shown, self.fences, self._titles
        end = len(text) if end is None else end
        number = max(0, bisect_right(fences, start, key=_start) - 1)
        at = start
        while at < end:
            stop = text.find("\n", at, end) + 1 or end
            while number < len(fences) and fences[number].stop <= at:
                number += 1
            if number < len(fences) and fences[number].start <= at:
                kind = "fence" if fences[number].start == at else "fenced"
                yield Line(at, stop, text[at:stop].rstrip("\r\n"), kind)
            else:
                yield Line(at, stop, shown[at:stop].rstrip("\r\n"), "heading" if at in titles else "")
            at = stop

    def number(self, at: int) -> int:
        """The number of the line at an offset, counted from 1."""
        if self._endings is None:
            self._endings = [found.start() for found in re.finditer("\n", self.text)]
        return bisect_left(self._endings, at) + 1

    def outside(self, at: int) -> int:
        """The beginning of a line at which something can be put that counts: `at`, or the next one to it."""
        begin = self.open_fence.start if self.open_fence else self.open_comment
        if begin is not None and at > begin:
            return self.text.rfind("\n", 0, begin) + 1
        number = bisect_right(self.comments, (at, 0)) - 1
        if number < 0 or "\n" not in self.text[slice(*self.comments[number])].removesuffix("\n"):
            return at
        return max(at, self.comments[number][1])

    def closing(self) -> str:
        """What to append so that the next text begins a line of its own, outside of code and comments."""
        ending = newline(self.text)
        begun = "" if self.text in _EMPTY or self.text.endswith("\n") else ending
        run = self.open_fence.closing if self.open_fence else "-->" if self.open_comment is not None else ""
        return f"{begun}{run}{ending}" if run else begun

    def gap(self) -> str:
        """What to append so that the next text begins after an empty line, outside of code and comments."""
        begun = self.closing()
        is_apart = self.text in _EMPTY or (self.text + begun).endswith(("\n\n", "\n\r\n"))
        return begun if is_apart else begun + newline(self.text)


class _Level(Struct):
    """A line that others below it can be indented under."""

    indent: int
    text: int = -1
    """Of an item of a list: how far its text is indented, and so whatever belongs to it."""
    end: int = -1
    """Where the item ends, once that was looked for."""


class _Scan:
    """Goes through a text once. What it looks for ahead is remembered, so that no stretch is searched again."""

    def __init__(self, text: str, *, comments: bool) -> None:
        self.text = text
        self.start = _START if comments else _START_WITHOUT_COMMENTS
        self.headings: list[tuple[int, int, int]] = []
        """Where each begins, where its marks begin, and where they end."""
        self.fences: list[Fence] = []
        self.comments: list[tuple[int, int]] = []
        self.unclosed: list[tuple[int, str]] = []
        self.open_comment: int | None = None
        self.blots: list[tuple[int, int, str]] = []
        """What does not count, and the mark that takes its place."""
        self.line = 0
        """Where the line of the last comment begins."""
        self.seen = 0
        self.spans: tuple[int, list[int], list[int]] = (-1, [], [])
        self.close = self.paragraph = -1
        self.levels: list[_Level] = []
        self.levelled = 0
        """Up to here the indentation of lines is in `levels`."""
        self.passed = 0
        """How many of `hidden` are before that."""
        self.hidden: list[tuple[int, int]] = []
        """Code and comments, in their order: their lines have no level."""

    def run(self) -> None:
        text, search = self.text, self.start.search
        found = _FIRST.match(text) or search(text)
        while found:
            begin = found.start()
            if found[1]:
                begin += text[begin] == "\n"
                self.headings.append((begin, found.start(1), found.end(1)))
                at = found.end(1)
            elif found[3]:
                begin += text[begin] == "\n"
                at = self._fence(found, begin)
            else:
                at = self._comment(begin)
            found = search(text, at - 1 if text[at - 1] == "\n" else at)

    def counted(self) -> str:
        """The text with everything blotted out that does not count."""
        text = self.text
        if any(mark in text for mark in (OPENING, INSIDE, CLOSING)):
            text = text.translate(_RESERVED)
        return self.blotted(text, f" {OPENING}{INSIDE}{CLOSING}")

    def blotted(self, text: str, marks: str) -> str:
        """The text in which what gets one of these marks has it."""
        parts, at = [], 0
        for start, stop, mark in self.blots:
            if mark in marks:
                parts += [text[at:start], _filled(text[start:stop], mark)]
                at = stop
        return "".join([*parts, text[at:]]) if parts else text

    # Code

    def _fence(self, found: re.Match[str], begin: int) -> int:
        """Blot out a block of code whose first line begins there; where to look on."""
        text, run = self.text, found[3]
        width = columns(found[2])
        if run[0] == "`" and "`" in found[4]:
            return found.end(3)
        item = self._item(found.start(2), width) if width else None
        if width > _DEEP and item is None:
            return found.end(3)
        indent = rf" {{0,{_DEEP}}}" if width <= _DEEP else rf"[ \t]{{0,{width + _DEEP}}}"
        limit = self._end(item, found.end()) if item else len(text)
        close = re.compile(rf"^{indent}{run[0]}{{{len(run)},}}[ \t\r]*$", re.MULTILINE).search(text, found.end(), limit)
        first = min(found.end() + 1, len(text))
        self.blots.append((found.start(3), first, OPENING))
        if close:
            stop = min(close.end() + 1, len(text))
            self.blots += [(first, close.start(), INSIDE), (close.start(), stop, CLOSING)]
        else:
            stop = limit
            self.blots.append((first, stop, INSIDE))
            self.unclosed.append((found.start(2), _unclosed("block of code", in_item=item is not None)))
        self.fences.append(Fence(begin, stop, "" if close else found[2] + run))
        self.hidden.append((begin, stop))
        return stop

    # Comments

    def _comment(self, start: int) -> int:
        """Blot out a comment; where to look on."""
        text = self.text
        self.line = text.rfind("\n", self.seen, start) + 1 or self.line
        self.seen = start
        if self.close <= start + 1:
            self.close = _found(text.find("-->", start + 2), text)
        indentation = _INDENTATION.match(text, self.line)
        if indentation and indentation.end() == start:
            item = (
                self._item(self.line, columns(indentation[0].removeprefix(BYTE_ORDER_MARK)))
                if start > self.line
                else None
            )
            limit = self._end(item, start) if item else len(text)
            stop = min(self._after(self.close), limit)
            if self.close >= limit:
                self.unclosed.append((start, _unclosed("comment", in_item=item is not None)))
                self.open_comment = start if item is None else None
        elif self._is_code(start) or self.close >= self._paragraph(start):
            return start + 4
        else:
            is_long = text.find("\n", start, self.close) >= 0
            stop = self._after(self.close) if is_long else self.close + 3
        self.blots.append((start, stop, " "))
        self.comments.append((start, stop))
        self.hidden.append((start, stop))
        return stop

    def _after(self, at: int) -> int:
        return self.text.find("\n", at) + 1 or len(self.text)

    def _paragraph(self, start: int) -> int:
        """Where the paragraph ends in which a comment begins."""
        if _HEADING.match(self.text, self.line):
            return _found(self.text.find("\n", start), self.text)
        if self.paragraph < start:
            end = _PARAGRAPH_END.search(self.text, start)
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

    # Items of lists

    def _item(self, line: int, width: int) -> _Level | None:
        """The innermost item of a list in which a line is that begins there and is indented so far."""
        for found in _INDENTED.finditer(self.text, self.levelled, line):
            while self.passed < len(self.hidden) and self.hidden[self.passed][1] <= found.start():
                self.passed += 1
            if self.passed < len(self.hidden) and self.hidden[self.passed][0] <= found.start():
                continue
            indent = columns(found[1])
            self._dedent(indent)
            self.levels.append(_Level(indent, indent + len(found[2]) + 1 if found[2] else -1))
        self.levelled = max(self.levelled, line)
        self._dedent(width)
        return next((level for level in reversed(self.levels) if 0 < level.text <= width), None)

    def _dedent(self, indent: int) -> None:
        while self.levels and self.levels[-1].indent >= indent:
            self.levels.pop()

    def _end(self, item: _Level, at: int) -> int:
        """Where an item ends: at the first line that is indented less than its text."""
        if item.end <= at:
            below = _INDENTED.finditer(self.text, self._after(at))
            item.end = next((one.start() for one in below if columns(one[1]) < item.text), len(self.text))
        return item.end


def _filled(text: str, mark: str) -> str:
    """A mark in the place of every character but those that end lines."""
    return _INK.sub(lambda ink: mark * len(ink[0]), text)


def _unclosed(what: str, *, in_item: bool) -> str:
    return f"this {what} is not closed, so {'the rest of its item' if in_item else 'what follows'} is part of it"


def _start(fence: Fence) -> int:
    return fence.start


def _title(rest: str) -> str:
    rest = rest.strip()
    bare = rest.rstrip("#")
    return bare.rstrip() if not bare or bare[-1] in " \t" else rest


def plain(title: str) -> str:
    """A title as it is compared: without case, emphasis, a colon at its end and double spaces."""
    return " ".join(title.strip(" \t*_:").split()).casefold()


def columns(blanks: str) -> int:
    """How far a line is indented; `blanks` may be the whole line."""
    if "\t" in blanks:
        blanks = blanks.expandtabs(4)
    return len(blanks) - len(blanks.lstrip(" "))


class Point(Struct):
    """An item of a list, as its first line begins."""

    indent: int
    tick: str | None
    """What is in its box: a blank, `x`, or nothing at all; None if it has none."""
    at: int
    """Where its text begins in the line."""


def point(line: str) -> Point | None:
    """The item that begins in a line."""
    found = _POINT.match(line)
    return Point(len(found[1].expandtabs(4)), found[2], found.end()) if found else None


def fence(text: str) -> str:
    """`text` as a block of code: its fence is longer than any run of backticks inside."""
    run = "`" * max(3, 1 + max(map(len, _TICKS.findall(text)), default=0))
    ending = "" if not text or text.endswith("\n") else "\n"
    return f"{run}\n{text}{ending}{run}\n"


def newline(text: str) -> str:
    """How the lines of `text` end, going by the first one."""
    at = text.find("\n")
    return "\r\n" if at > 0 and text[at - 1] == "\r" else "\n"


def adapted(text: str, ending: str) -> str:
    """`text` with its lines ended by `ending`."""
    text = text.replace("\r\n", "\n")
    return text if ending == "\n" else text.replace("\n", ending)


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
