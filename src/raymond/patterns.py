"""Patterns that are compiled when they are first used: a process that lives for an instant imports many of them."""

import re
from typing import Any, AnyStr, cast


def regex(text: AnyStr, flags: int = 0) -> "re.Pattern[AnyStr]":
    """As `re.compile`. Call its methods: functions of `re` do not take it."""
    return cast("re.Pattern[AnyStr]", _Pattern(text, flags))


class _Pattern:
    """Becomes as fast as the compiled one with the first use of each method."""

    def __init__(self, text: Any, flags: int) -> None:
        self._given = text, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._given), name)  # re keeps what it has compiled
        setattr(self, name, found)
        return found


_NUMBER = regex(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?")


def unnumbered(text: str) -> str:
    """`text` without what differs when a program prints the same again: times, addresses, counts."""
    return _NUMBER.sub("0", text)
