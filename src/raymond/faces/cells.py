"""How many cells of a terminal a text takes: as a rule, at the most, and at the least."""

import functools
import os
import unicodedata

_LAST_NARROW = "\u2e7f"
"""After it come mostly wide characters, and terminals disagree about the rest."""


def size(text: str) -> int:
    """As a rule: what columns are aligned by, and what a row of a block takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # most texts need no table of widths

    # Some terminals show joined characters as one, some do not.
    return max(cell_len(text), sum(2 if _is_disputed(one) else cell_len(one) for one in text))


def most(text: str) -> int:
    """At the most, whatever the terminal: a text that is wrapped by it never runs over the end of a line."""
    return len(text) if text.isascii() else sum(map(widest, text))


def least(text: str) -> int:
    """At the least: who erases lines by it erases none too many."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return min(cell_len(text), sum(map(cell_len, text)))


def widest(letter: str) -> int:
    """The most cells that a terminal gives to one character."""
    return 2 if letter > _LAST_NARROW or unicodedata.east_asian_width(letter) in _wide() else 1


@functools.cache
def _wide() -> str:
    """The classes of characters with two cells; where Chinese, Japanese or Korean is read, Greek and Cyrillic too."""
    names = (os.environ.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    return "WFA" if next(filter(None, names), "").startswith(("zh", "ja", "ko")) else "WF"


def first(text: str, width: int) -> str:
    """The most of `text` that fits into `width` cells."""
    taken = 0
    for number, letter in enumerate(text):
        taken += size(letter)
        if taken > width:
            text = text[:number]
            break
    while size(text) > width:  # a mark may make the character before it wider
        text = text[:-1]
    return text


def _is_disputed(letter: str) -> bool:
    """Whether it has two cells in the tables of the C library and one in Unicode's."""
    return "\u3248" <= letter <= "\u324f" or "\u4dc0" <= letter <= "\u4dff"
