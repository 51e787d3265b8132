"""Names that nearly match a field: whoever misspells one must not believe that it counts."""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from functools import lru_cache

from raymond.patterns import regex

VERIFICATION = "verification"
_ALIKE = 0.82
"""`Verification notes` is no slip of the pen."""
_LINE = regex(
    r"^[ \t\xa0]{0,3}(?:[-*+][ \t]{1,4})?"
    r"(?:[*_]{0,3}([a-z]{9,15})[*_]{0,3}[ \t]{0,4}:|(?:\*\*|__)([a-z]{9,15})(?:\*\*|__)[ \t]*\r?$)",
    re.MULTILINE | re.IGNORECASE,
)


@lru_cache(4096)
def meant(name: str, known: tuple[str, ...]) -> str:
    """The known field that an unknown name is probably meant to be; empty when there is none."""
    plain = " ".join(name.replace("-", " ").replace("_", " ").split()).casefold()
    found = get_close_matches(plain, known, 1, _ALIKE)
    return found[0] if found else ""


def told(name: str, field: str) -> str:
    """What is said about it."""
    return f"`{name}` is not read: did you mean `{field.capitalize()}`?"


def quoted(text: str) -> str:
    """Somebody's words in a sentence of ours: backticks around others would hide where they end."""
    return f'"{text}"' if "`" in text else f"`{text}`"


def unread(text: str, start: int, end: int) -> Iterator[tuple[str, int]]:
    """Lines that look like a verification, but are not a field: what is said about each, and where it begins."""
    for found in _LINE.finditer(text, start, end):
        name = found[1] or found[2]
        if meant(name, (VERIFICATION,)):
            exact = name.casefold() == VERIFICATION
            yield (f"`{name}` is not read: write `**{name}:**`" if exact else told(name, VERIFICATION)), found.start()


def unread_in(line: str) -> list[str]:
    """The same for one line."""
    if ":" not in line and not line.rstrip().endswith(("**", "__")):
        return []
    return [message for message, _ in unread(line, 0, len(line))]
