"""The label of an agent: a few words by which people tell forks apart."""

from collections.abc import Mapping

from raymond.text import JOINERS, letters

LABEL = "label"
"""The variable that gives it."""
LONGEST = 40
_CUT = "..."


def label_of(variables: Mapping[str, str]) -> str:
    """The label of an agent with these variables: `label`, else the first one; empty when there is none.

    It is one short line that is safe to print. A long one keeps its beginning and its end: paths differ in either.
    """
    if not variables:
        return ""
    text = variables[LABEL] if LABEL in variables else next(iter(variables.values()))
    if len(text) <= LONGEST and text.isascii() and text.isprintable():
        return " ".join(text.split())
    # An escape is left out as a whole.
    shown = letters(" ".join(text[: 100 * LONGEST].split()))
    if sum(map(len, shown)) <= LONGEST:
        return "".join(shown)
    end = (LONGEST - len(_CUT)) // 2
    head = _within(shown, LONGEST - len(_CUT) - end)
    tail = _within(shown[::-1], end)[::-1]
    return f"{''.join(head).rstrip(JOINERS)}{_CUT}{''.join(tail).lstrip(JOINERS)}"


def _within(shown: list[str], room: int) -> list[str]:
    """The first of them that have no more than `room` characters together."""
    for number, one in enumerate(shown):
        room -= len(one)
        if room < 0:
            return shown[:number]
    return shown


def named(agent: str, label: str) -> str:
    """How people read an agent: `name (label)`."""
    return f"{agent} ({label})" if label else agent
