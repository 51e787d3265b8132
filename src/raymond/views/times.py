"""Times as people and programs read them: UTC."""

from datetime import UTC, datetime
from functools import lru_cache

_FIRST, _LAST = -30610224000, 253402300799
"""The seconds of the years that have four digits."""


@lru_cache(maxsize=64)
def second(time: int) -> str:
    """UTC to the second, without a zone; cached, because thousands of lines can share a second."""
    return datetime.fromtimestamp(max(_FIRST, min(time, _LAST)), UTC).strftime("%Y-%m-%dT%H:%M:%S")


def instant(time: float) -> str | None:
    """UTC with seconds, as in logs; None for no time."""
    return f"{second(int(time))}Z" if time else None


def moment(text: str | None) -> float:
    """The time that `instant` wrote; 0 for none."""
    return datetime.fromisoformat(text).timestamp() if text else 0.0
