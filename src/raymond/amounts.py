"""Money and counts, as people set them and programs report them: finite, small enough to add up for ever."""

import math

MOST = 1_000_000_000
"""The most dollars, and the most of anything that is counted."""


def dollars(value: object) -> float:
    """The number of dollars in `value`; ValueError says what it must be."""
    return _within(_number(value), 0, "a number of dollars")


def count(value: object, least: int = 1) -> int:
    """The whole number in `value`; ValueError says what it must be."""
    amount = _number(value) if isinstance(value, int) or (isinstance(value, str) and _is_whole(value)) else math.nan
    return int(_within(amount, least, "a whole number"))


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
