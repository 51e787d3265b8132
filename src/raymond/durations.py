"""Durations as people write them: `90s`, `10m`, `2h`, `1d`."""

from raymond.patterns import regex
from raymond.text import digits

_FORM = regex(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
LONGEST = 366 * 86400.0


def explain(text: object) -> str:
    """What `text`, which `parse` has not read, should be."""
    found = _FORM.fullmatch(text.strip()) if isinstance(text, str) else None
    is_long = found and float(found[1]) * _SECONDS[found[2]] > LONGEST
    return f"a duration of at most {LONGEST / 86400.0:g}d" if is_long else "a duration"


def parse(text: str) -> float | None:
    """Seconds, or None when `text` is not a duration, or too long."""
    found = _FORM.fullmatch(text.strip())
    if not found:
        return None
    seconds = float(found[1]) * _SECONDS[found[2]]
    return seconds if seconds <= LONGEST else None


def show(seconds: float) -> str:
    """`seconds` in at most two units: `3m 48s`."""
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    if seconds < 60:
        return f"{seconds:.1f}s".replace(".0s", "s")
    whole = round(seconds)
    for size, unit, below, small in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            rest = whole % size // below
            return f"{whole // size}{unit} {rest}{small}" if rest else f"{whole // size}{unit}"
    return f"{whole}s"


def brief(seconds: float) -> str:
    """`seconds` rounded to whole seconds."""
    return show(float(round(seconds))) if seconds >= 1 else "0s"


def written(seconds: float) -> str:
    """`seconds` in the form that `parse` reads."""
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "m")):
        if seconds and seconds % size == 0:
            return f"{round(seconds / size)}{unit}"
    return f"{digits(seconds)}s"
