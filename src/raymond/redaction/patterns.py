"""Patterns that are compiled at first use: most commands never need them."""

import re
from functools import cache


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern, compiled once."""
    return re.compile(pattern)
