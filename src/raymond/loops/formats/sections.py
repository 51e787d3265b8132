"""Headings, fences and lines of a markdown text, with their offsets.

Whoever changes a text cuts and splices it by these offsets, so that whatever is not understood stays byte for byte. A
line ends at "\\n"; a "\\r" before it belongs to the ending, and one anywhere else is a character like others.
"""

import re
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
