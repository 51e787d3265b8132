"""Patterns that are compiled at first use: most commands, and most texts, never need them."""

import re
from functools import cache

from msgspec import Struct


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern, compiled once."""
    return re.compile(pattern)


class Hint(Struct, frozen=True):
    """Something that is quick to find: a pattern, and fixed characters that it begins with."""

    begin: str
    rest: str = ""
    """The pattern after them."""

    def is_in(self, text: str) -> bool:
        """Whether the text has it."""
        return self.begin in text and (not self.rest or _whole(self.begin, self.rest).search(text) is not None)


@cache
def _whole(begin: str, rest: str) -> re.Pattern[str]:
    return re.compile(re.escape(begin) + rest)
