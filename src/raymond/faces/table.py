"""A table for people: aligned by the cells that a terminal gives to its texts, and never wider than that."""

import functools
import os
import unicodedata
from collections.abc import Sequence
from typing import TextIO

from msgspec import Struct

from raymond.text import visible

_LAST_NARROW = "\u2e7f"
"""After it come mostly wide characters, and terminals disagree about the rest."""

_GAP = "  "


# Cells of a terminal


def cell_count(text: str) -> int:
    """As a rule: what columns are aligned by, and what a row of a block takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # most texts need no table of widths

    # Some terminals show joined characters as one, some do not.
    return max(cell_len(text), sum(2 if _is_disputed(one) else cell_len(one) for one in text))


def max_cells(text: str) -> int:
    """At the most, whatever the terminal: a text that is wrapped by it never runs over the end of a line."""
    return len(text) if text.isascii() else sum(map(max_cells_of, text))


def min_cells(text: str) -> int:
    """At the least: who erases lines by it erases none too many."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return min(cell_len(text), sum(map(cell_len, text)))


def max_cells_of(letter: str) -> int:
    """The most cells that a terminal gives to one character."""
    return 2 if letter > _LAST_NARROW or unicodedata.east_asian_width(letter) in _wide_classes() else 1


@functools.cache
def _wide_classes() -> str:
    """The classes of characters with two cells; where Chinese, Japanese or Korean is read, Greek and Cyrillic too."""
    names = (os.environ.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    return "WFA" if next(filter(None, names), "").startswith(("zh", "ja", "ko")) else "WF"


def clip(text: str, width: int) -> str:
    """The most of `text` that fits into `width` cells."""
    taken = 0
    for number, letter in enumerate(text):
        taken += cell_count(letter)
        if taken > width:
            text = text[:number]
            break
    while cell_count(text) > width:  # a mark may make the character before it wider
        text = text[:-1]
    return text


def _is_disputed(letter: str) -> bool:
    """Whether it has two cells in the tables of the C library and one in Unicode's."""
    return "\u3248" <= letter <= "\u324f" or "\u4dc0" <= letter <= "\u4dff"


# Tables


class Column(Struct, frozen=True, kw_only=True):
    """A column, and what becomes of it where there is not enough room."""

    title: str = ""
    right: bool = False
    """Whether its texts end at the same place, as numbers do."""
    least: int = 0
    """Down to how many columns of the terminal its texts are shortened; 0 for not at all."""
    rank: int = 0
    """Columns are left out one by one, the highest rank first; one with rank 0 always stays."""
    prose: bool = False
    """Whether its texts are shortened at their end; names and paths are in the middle."""


def lines(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int = 0, mark: str = "…") -> list[str]:
    """A line for each row, with a head if a column has a title; `width` 0 is any width, `mark` shows where text is cut.

    What is in the cells is foreign: nothing of it reaches the terminal but what can be seen.
    """
    head = [[one.title for one in columns]] if any(one.title for one in columns) else []
    cells = [[visible(cell) for cell in row] for row in (*head, *rows)]
    sizes = {number: max((cell_count(row[number]) for row in cells), default=0) for number in range(len(columns))}
    sizes = {number: wide for number, wide in sizes.items() if any(row[number] for row in cells[len(head) :])}
    if width:
        _shrink(columns, sizes, width)
    return [_line(columns, row, sizes, mark) for row in cells]


def _shrink(columns: Sequence[Column], sizes: dict[int, int], width: int) -> None:
    """Make the longest texts shorter, then leave columns out, until it fits."""
    while (over := sum(sizes.values()) + len(_GAP) * (len(sizes) - 1) - width) > 0:
        room = {number: wide for number, wide in sizes.items() if 0 < columns[number].least < wide}
        if room:
            number = max(room, key=lambda one: (room[one], one))
            next_ = max((wide for other, wide in room.items() if other != number), default=0)
            sizes[number] = max(columns[number].least, sizes[number] - over, min(next_ - 1, sizes[number] - 1))
            continue
        number = max(sizes, key=lambda one: (columns[one].rank, one))
        if len(sizes) > 1 and columns[number].rank:
            del sizes[number]
            continue
        widest = max(sizes, key=lambda one: sizes[one])
        if sizes[widest] <= 1:
            return
        sizes[widest] -= min(over, sizes[widest] - 1)


def _line(columns: Sequence[Column], row: Sequence[str], sizes: dict[int, int], mark: str) -> str:
    cells = []
    for number, wide in sizes.items():
        text = fit(row[number], wide, mark, prose=columns[number].prose)
        blanks = " " * (wide - cell_count(text))
        cells.append(f"{blanks}{text}" if columns[number].right else f"{text}{blanks}")
    return _GAP.join(cells).rstrip()


def fit(text: str, width: int, mark: str = "…", *, prose: bool = False) -> str:
    """`text` in at most `width` columns: its middle is left out, or with `prose` its end."""
    if cell_count(text) <= width:
        return text
    room = width - cell_count(mark)
    if room <= 0:
        return mark[: max(0, width)]
    tail = 0 if prose else room // 2
    return f"{clip(text, room - tail)}{mark}{clip(text[::-1], tail)[::-1]}"


def cut_mark(stream: TextIO) -> str:
    """What is shown where text is missing."""
    return "…" if (stream.encoding or "").lower().replace("-", "") == "utf8" else ".."
