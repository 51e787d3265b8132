"""`{{name}}` in prompts: plain replacement, and nothing that computes."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from raymond.patterns import regex

_NAME = regex(r"\{\{([A-Za-z_][A-Za-z0-9_]*)\}\}")
_PLACE = regex(r"\{\{(?:include:([^{}\n]+)|([A-Za-z_][A-Za-z0-9_]*))\}\}")
_NOTHING: Mapping[str, str] = MappingProxyType({})


def render(text: str, values: Mapping[str, str], include: Mapping[str, str] = _NOTHING) -> str:
    """`text` with its names replaced; unknown names stay, and values are not scanned again."""

    def value(found: re.Match[str]) -> str:
        return values.get(found[1], found[0])

    def place(found: re.Match[str]) -> str:
        if found[1] is None:
            return values.get(found[2], found[0])
        # An included text sees the values but includes nothing itself, so that it cannot include itself.
        return _NAME.sub(value, include[found[1]]) if found[1] in include else found[0]

    return _PLACE.sub(place, text)


def names(text: str) -> list[tuple[str, int]]:
    """The names `text` uses, `include:NAME` too, each with its offset."""
    return [(found[0][2:-2], found.start()) for found in _PLACE.finditer(text)]
