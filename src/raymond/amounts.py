"""Money, counts and sizes, as people set them and programs report them: finite, small enough to add up for ever."""

import math
import re

from raymond.patterns import regex

MOST = 1_000_000_000
"""The most dollars, and the most of anything that is counted."""
_LARGEST = 1 << 50


_UNITS = {"": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_SIZE = regex(r"([0-9]{1,12}) ?([KMGT]B|)", re.ASCII | re.IGNORECASE)


def dollars(value: object) -> float:
    """The number of dollars in `value`; ValueError says what it must be."""
    return _within(_number(value), 0, "a number of dollars")


def count(value: object, least: int = 1) -> int:
    """The whole number in `value`; ValueError says what it must be."""
    amount = _number(value) if isinstance(value, int) or (isinstance(value, str) and _is_whole(value)) else math.nan
    return int(_within(amount, least, "a whole number"))


def size(value: object) -> int:
    """The bytes in `value`, such as 500MB; ValueError says what it must be."""
    found = _SIZE.fullmatch(str(value)) if isinstance(value, int | str) and not isinstance(value, bool) else None
    amount = int(found[1]) * _UNITS[found[2].upper()] if found else 0
    if 0 < amount <= _LARGEST:
        return amount
    raise ValueError("a size, like 500MB or 2GB")


def written(size: int) -> str:
    """A size as people set it."""
    unit = next(name for name, one in reversed(_UNITS.items()) if size % one == 0)
    return f"{size // _UNITS[unit]}{unit}"


def is_cost(value: float) -> bool:
    """Whether a turn can have cost this."""
    return 0 <= value <= MOST


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        return float(value)
    except ValueError:
        return math.nan
    except OverflowError:  # an integer of hundreds of digits
        return math.inf


def _within(amount: float, least: int, what: str) -> float:
    if amount > MOST:
        raise ValueError(f"{what}, at most {MOST:,}")
    if amount >= least:
        return amount
    raise ValueError(f"{what}, {least} or more")
