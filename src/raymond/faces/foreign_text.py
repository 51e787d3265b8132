"""Text that somebody else wrote and a person decides on: shown so that nothing of it is hidden."""

import re
from collections.abc import Iterable, Iterator

from raymond.text import visible

_LONGEST = 300
_UNSEEN = re.compile(r"[\u034f\u17b4\u17b5\u180b-\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Marks on the character before them that show nothing, and that other texts may have."""


def told_lines(told: Iterable[tuple[str, str]]) -> list[str]:
    """A line for each thing: what it is, and its text."""
    return [f"{name + ':':<11}{laid_open(text)}" for name, text in told]


def some(name: str, most: int, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The first few, and how many more there are: too many would push away what stands above them."""
    found = list(texts)
    yield from ((name, text) for text in found[:most])
    if found[most:]:
        yield name, f"[and {len(found) - most} more]"


def laid_open(text: str) -> str:
    """On one line, with nothing hidden by blanks or by length."""
    text = _UNSEEN.sub(lambda mark: ascii(mark[0])[1:-1], visible(text))
    text = re.sub(r" {3,}", lambda blanks: f" [{len(blanks[0])} spaces] ", text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} [and {len(text) - _LONGEST} characters more]"
