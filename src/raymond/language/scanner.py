"""Text in chunks -> the tags in it: one pass, linear time, bounded memory.

At the outermost level whatever opens first and does close wins: a tag, a fence, inline code, a comment. What opens and
never closes is plain text, and so is what closes more than `LIMIT` characters later; the scan continues right after it.
When the end of the text so far leaves open what a construct is, the scan stalls there until more has come. So that no
text is looked at again and again: closing strings are looked for once each (`_seek`), the closing lines of fences are
kept as a sliding maximum (`Closers`), and a line's runs of backticks are counted once (`_last_in_line`).
"""

import re
from collections import deque
from collections.abc import Callable

from msgspec import Struct

from raymond.language.tags import TAGS
from raymond.patterns import regex

NAMES = tuple(TAGS)
LIMIT = 8 * 1024 * 1024
"""Characters a payload or a quotation may have."""
MOST_ATTRIBUTES = 1000
PATIENT = 4096
"""A stall longer than this is looked at again only when the text has grown by a quarter."""

_STALL = -1
_find = str.find  # a name of its own, so that tests can count how much text is looked at
_BEFORE = 4
"""Characters kept before the position: a line end and three spaces decide whether something is a fence."""
_NAMES = "|".join(NAMES)
_TAG = regex(rf"<({_NAMES})(?=[\s>])")
# Every branch begins with a literal, so that `re` skips prose quickly; the last ones are tokens cut off by the end.
_CANDIDATE = regex(
    rf"``*+|~~~~*+|<(?:!--|({_NAMES})(?=[\s>])|/({_NAMES})>|[a-z!/\-]{{0,9}}+\Z)|~~?\Z",
)
_RUN = regex(r"``*+")
_ATTRIBUTE = regex(r"""\s++([^\s=<>"'/]++)=(?:"([^"]*+)"|'([^']*+)')""")
_END = regex(r"\s*+>")
_HALF = regex(r"""\s*(?:(?<=\s)[^\s=<>"'/]++(?:=(?:"[^"]*+|'[^']*+)?)?)?\Z""")
_ENTITY = regex(r"&(lt|gt|amp|quot|apos);")
_ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}


class Tag(Struct, frozen=True):
    """One tag as it was written; nothing about it is checked."""

    name: str
    attributes: dict[str, str]
    body: str
    start: int
    quoted: str = ""
    """Empty, or where it is quoted: `fence`, `code`, `comment`."""
    twice: str = ""
    """An attribute that was given more than once."""
    stop: int = 0
    """Where the text continues after it."""


class Opening(Struct, frozen=True):
    """The opening half of a tag; its body begins at `stop`."""

    attributes: dict[str, str]
    twice: str
    stop: int


class Line(Struct, frozen=True):
    """A line that could close a fence of up to `size` marks; offsets in the whole text."""

    start: int
    stop: int
    size: int


class Closers:
    """The closing lines for one kind of fence ahead of the scan, as a sliding window."""

    def __init__(self, mark: str) -> None:
        self._form = re.compile(rf"\n {{0,3}}({mark}{{3,}}+)[ \t\r\f\v]*+(?=\n|\Z)")
        self._lines: deque[Line] = deque()
        self._peaks: deque[Line] = deque()
        """Those longer than all that follow; the first is the longest of the window."""
        self._ahead: Line | None = None
        """Found already, but too far away for the last opener."""
        self._upto = 0

    def find(self, text: str, base: int, span: tuple[int, int], size: int, limit: int) -> Line | None:
        """The first line in `span` that closes `size` marks and ends within `limit`; `text` begins at `base`."""
        start = base + span[0]
        self._forget(start)
        self._extend(text, base, span, limit)
        if not self._peaks or self._peaks[0].size < size:
            return None
        while self._lines[0].size < size:
            self._lines.popleft()
        return self._lines[0]

    def _forget(self, start: int) -> None:
        # The line that opens looks like one that closes: it goes too.
        for lines in (self._lines, self._peaks):
            while lines and lines[0].start <= start:
                lines.popleft()

    def _extend(self, text: str, base: int, span: tuple[int, int], limit: int) -> None:
        start = base + span[0]
        while line := self._ahead or self._look(text, base, span):
            self._ahead = line
            if line.stop - start > limit:
                return
            self._ahead = None
            if line.start > start:
                self._add(line)

    def _look(self, text: str, base: int, span: tuple[int, int]) -> Line | None:
        found = self._form.search(text, max(self._upto - base, span[0]), span[1])
        self._upto = base + (found.end() if found else span[1])
        return Line(base + found.start() + 1, base + found.end(), len(found[1])) if found else None

    def _add(self, line: Line) -> None:
        while self._peaks and self._peaks[-1].size <= line.size:
            self._peaks.pop()
        self._peaks.append(line)
        self._lines.append(line)


class Scanner:
    """Hands every tag to `take` as soon as it is certain, in the order of the text."""

    def __init__(
        self, take: Callable[[Tag], object], limit: int = LIMIT, quote: Callable[[int, int, str], object] | None = None
    ) -> None:
        self.long = ""
        """The name of a tag whose payload is over the limit."""
        self.unclosed = ""
        """The name of the first transition that opens and does not close."""
        self._take = take
        self._hear_quote = quote
        """Told where each quotation is, and of which kind."""
        self._limit = limit
        self._text = ""
        self._at = 0
        self._base = 0
        self._final = False
        self._waiting: list[str] = []
        self._size = 0
        self._needed = 0
        self._needle = ""
        self._tail = ""
        self._sought: dict[str, tuple[int, int]] = {}
        self._closers: dict[str, Closers] = {}
        self._line = 0
        self._runs: tuple[int, dict[int, int]] = (-1, {})
        self._given_up: set[str] = set()

    def feed(self, text: str) -> None:
        """Take more text."""
        self._waiting.append(text)
        self._size += len(text)
        if self._arrived(text) or self._size >= self._needed:
            self._join()
            self._advance()
            self._plan()

    def close(self) -> None:
        """There is no more text: decide what was open."""
        self._final = True
        if self._waiting or self._at < len(self._text):
            self._join()
            self._advance()
        self._text = ""

    @property
    def held(self) -> int:
        """Characters kept in memory."""
        return len(self._text) + sum(map(len, self._waiting))

    def _arrived(self, text: str) -> bool:
        if not self._needle:
            return False
        seen = self._tail + text
        self._tail = seen[max(0, len(seen) - len(self._needle) + 1) :]
        return self._needle in seen

    def _join(self) -> None:
        cut = max(0, self._at - _BEFORE)
        self._text = self._text[cut:] + "".join(self._waiting)
        self._waiting = []
        if cut:
            self._at -= cut
            self._base += cut
            self._sought = {needle: (at - cut, upto - cut) for needle, (at, upto) in self._sought.items()}
            self._runs = (-1, {})

    def _plan(self) -> None:
        """When to look again: joining for each chunk would make many small ones quadratic."""
        stalled = len(self._text) - self._at
        self._size = stalled
        if self._needle:
            self._needed = max(stalled, self._limit) + self._limit // 4
            self._tail = self._text[max(self._at, len(self._text) - len(self._needle) + 1) :]
        else:
            self._needed = stalled + stalled // 4 if stalled > PATIENT else 0

    def _advance(self) -> None:
        text = self._text
        self._needle = ""
        self._line = len(text) if self._final else text.rfind("\n", self._at)
        while found := _CANDIDATE.search(text, self._at):
            after = self._step(found)
            if after == _STALL:
                self._at = found.start()
                return
            self._at = after
        self._at = len(text)

    def _step(self, found: re.Match[str]) -> int:
        """Where the scan continues after what may begin here, or a stall."""
        start, stop = found.span()
        if found[1]:
            return self._tag(found[1], start, stop)
        if found[2]:
            return self._stray(found[2], stop)
        if self._text[start] != "<":
            return self._marks(start, stop)
        if stop - start == 4 and self._text.startswith("<!--", start):
            return self._comment(start, stop)
        return stop if self._final else _STALL

    def _open(self, start: int, needle: str = "") -> bool:
        """Whether text still to come could close what began at `start`."""
        if self._final or len(self._text) - start > self._limit:
            return False
        self._needle = needle
        return True

    def _seek(self, needle: str, start: int) -> int:
        at, upto = self._sought.get(needle, (-1, 0))
        if at < start:
            at = _find(self._text, needle, max(start, upto))
            self._sought[needle] = (at, at if at >= 0 else len(self._text) - len(needle) + 1)
        return at

    def _tag(self, name: str, start: int, stop: int) -> int:
        end = min(len(self._text), start + self._limit)
        opening = read_opening(self._text, stop, end)
        if opening is None:
            half = not self._final and end == len(self._text) and is_half(self._text, stop, end)
            return _STALL if half else stop
        closing = f"</{name}>"
        at = self._seek(closing, opening.stop)
        if 0 <= at <= opening.stop + self._limit:
            self._emit(name, opening, start, at)
            return at + len(closing)
        if at < 0 and self._open(opening.stop + len(closing), closing):
            return _STALL
        self._given_up.add(name)
        if name != "print":
            self.unclosed = self.unclosed or name
        return opening.stop

    def _stray(self, name: str, stop: int) -> int:
        if name in self._given_up:
            self.long = self.long or name
        return stop

    def _emit(self, name: str, opening: Opening, start: int, at: int, quoted: str = "") -> None:
        body = self._text[opening.stop : at]
        stop = self._base + at + len(name) + 3
        self._take(Tag(name, opening.attributes, body, self._base + start, quoted, opening.twice, stop))

    def _comment(self, start: int, stop: int) -> int:
        at = self._seek("-->", stop)
        if 0 <= at <= start + self._limit - 3:
            self._quote(stop, at, "comment")
            return at + 3
        return _STALL if at < 0 and self._open(start, "-->") else stop

    def _marks(self, start: int, stop: int) -> int:
        """A run of backticks or tildes: a fence, inline code, or plain text."""
        text, mark = self._text, self._text[start]
        leads = stop - start >= 3 and self._leads_line(start)
        if mark == "~" and stop - start < 3:
            return stop if self._final else _STALL
        # A run after a backtick is the rest of one that was given up because it did not end.
        if (mark == "~" and not leads) or text[start - 1 : start] == "`":
            return stop
        end = self._seek("\n", stop)
        if end < 0:
            if self._open(start, "\n"):
                return _STALL
            end = len(text)
        if end - start > self._limit:
            return stop
        if leads and (mark == "~" or _find(text, "`", stop, end) < 0):
            return self._fence(start, stop)
        return self._code(start, stop, end)

    def _leads_line(self, start: int) -> bool:
        before = self._text[max(0, start - _BEFORE) : start]
        # Without a line end in it, `before` is only shorter than _BEFORE where the whole text begins.
        blanks = before[before.rfind("\n") + 1 :]
        return len(blanks) < _BEFORE and not blanks.strip(" ")

    def _fence(self, start: int, stop: int) -> int:
        mark = self._text[start]
        closers = self._closers.get(mark) or self._closers.setdefault(mark, Closers(mark))
        line = closers.find(self._text, self._base, (start, max(start, self._line)), stop - start, self._limit)
        if line:
            self._quote(stop, line.start - self._base, "fence")
            return line.stop - self._base
        return _STALL if self._open(start) else stop

    def _code(self, start: int, stop: int, end: int) -> int:
        size = stop - start
        if self._last_in_line(size, start, end) <= start:
            return stop
        runs = _RUN.finditer(self._text, stop, end)
        close = next(run for run in runs if run.end() - run.start() == size)
        self._quote(stop, close.start(), "code")
        return close.end()

    def _last_in_line(self, size: int, start: int, end: int) -> int:
        if self._runs[0] != end:
            last = {run.end() - run.start(): run.start() for run in _RUN.finditer(self._text, start, end)}
            self._runs = (end, last)
        return self._runs[1].get(size, -1)

    def _quote(self, start: int, stop: int, kind: str) -> None:
        if self._hear_quote:
            self._hear_quote(self._base + start, self._base + stop, kind)
        missing: set[str] = set()
        while found := _TAG.search(self._text, start, stop):
            start, name = found.end(), found[1]
            opening = read_opening(self._text, start, stop)
            if opening is None:
                continue
            start = opening.stop
            at = -1 if name in missing else _find(self._text, f"</{name}>", start, stop)
            if at < 0:
                missing.add(name)
                continue
            self._emit(name, opening, found.start(), at, kind)
            start = at + len(name) + 3


def read_opening(text: str, at: int, end: int) -> Opening | None:
    """The attributes from `at`, right after the tag's name, and its `>`."""
    if text[at] == ">":
        return Opening({}, "", at + 1)
    attributes: dict[str, str] = {}
    twice = ""
    count = 0
    while (found := _ATTRIBUTE.match(text, at, end)) and count < MOST_ATTRIBUTES:
        name, double, single = found.groups()
        twice = name if name in attributes else twice
        attributes[name] = decode(single if double is None else double)
        at = found.end()
        count += 1
    close = _END.match(text, at, end)
    return Opening(attributes, twice, close.end()) if close else None


def is_half(text: str, at: int, end: int) -> bool:
    """Whether text after `end` could still make this the opening of a tag."""
    for _ in range(MOST_ATTRIBUTES):
        found = _ATTRIBUTE.match(text, at, end)
        if not found:
            break
        at = found.end()
    return _HALF.match(text, at, end) is not None


def decode(value: str) -> str:
    """`value` with its entities replaced, once."""
    if "&" not in value:
        return value
    return _ENTITY.sub(lambda found: _ENTITIES[found[1]], value)
