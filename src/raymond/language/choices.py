"""The answers that a question offers: `choices="yes,no"`."""

from collections.abc import Sequence

from raymond.patterns import regex

MOST = 50
"""Choices of a question."""
LONGEST = 200
"""Characters of a choice."""
_LIKE_COMMAS = regex(r"[\u02cc\u02cf\u060c\u201a\u2e34\u2e41\u2e49\u3001\ufe10\ufe11\ufe50\ufe51\uff0c\uff64]")
"""What looks like the comma between two choices."""


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
    if number := next((one for one in found if one.replace(" ", "").isdigit()), ""):
        return f"`choices` has `{number}`, and a number selects a choice by its place: add a word to it"
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
    return ", ".join(f"{number} {_quoted(one)}" for number, one in enumerate(choices, 1))


def _quoted(choice: str) -> str:
    """A choice that could be taken for two, or for another one, in quotes."""
    return f'"{choice}"' if _LIKE_COMMAS.search(choice) or choice != choice.strip() or "," in choice else choice
