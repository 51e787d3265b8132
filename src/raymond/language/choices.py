"""The answers that a question offers: `choices="yes,no"`."""

from collections.abc import Sequence

MOST = 50
"""Choices of a question."""
LONGEST = 200
"""Characters of a choice."""


def parse(text: str) -> tuple[str, ...]:
    """The choices in the order written."""
    return tuple(" ".join(one.split()) for one in text.split(",") if one.strip())


def problem(text: str) -> str:
    """What is wrong with the choices; empty when nothing is."""
    found = parse(text)
    if len(found) < 2:
        return "`choices` needs two or more, with commas between them"
    if len(found) > MOST or max(map(len, found)) > LONGEST:
        return f"`choices` has more than {MOST}, or one of more than {LONGEST} characters"
    if len({one.casefold() for one in found}) < len(found):
        return "`choices` has one of them twice"
    return ""


def pick(choices: Sequence[str], answer: str) -> str | None:
    """The choice that is meant, as it is written: by its text in upper or lower case, or by its number."""
    said = " ".join(answer.split()).casefold()
    for one in choices:
        if one.casefold() == said:
            return one
    if said.isascii() and said.isdecimal() and len(said) < 4 and 1 <= int(said) <= len(choices):
        return choices[int(said) - 1]
    return None


def offer(choices: Sequence[str]) -> str:
    """All of them in a line, with their numbers."""
    return ", ".join(f"{number} {one}" for number, one in enumerate(choices, 1))
