"""Outcome: how an agent ended, and what of its result is held in memory."""

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from raymond.digests import digest

LONG = 16 << 10
"""Characters; a longer text is kept in a file of its own."""
_SHOWN = 1000
"""Characters of a long result that everybody can see without that file."""


class Outcome(Struct, frozen=True, array_like=True, omit_defaults=True, gc=False):
    """How an agent ended."""

    agent: str
    state: str
    status: str
    result: str = ""
    """All of it, or the beginning of a long one."""
    error: str = ""
    long: str = ""
    """The name of a long result, which is kept outside of the journal."""
    length: int = 0
    """How many characters a long result has."""
    label: str = ""
    """What people tell the agent apart by."""


Whole: TypeAlias = Callable[[Outcome], str]
"""Gives all of a result, also of one that is only referred to."""


def done(agent: str, state: str, result: str, label: str = "") -> Outcome:
    """The agent has returned; a long result is only referred to."""
    # That of the whole run is there once, and shown as soon as it has ended.
    if len(result) <= LONG or agent == "main":
        return Outcome(agent, state, "done", result, label=label)
    return Outcome(agent, state, "done", result[:_SHOWN], "", name_of(data_of(result)), len(result), label)


def data_of(text: str) -> bytes:
    """A long text as it is kept in a file."""
    return text.encode("utf-8", "surrogatepass")


def name_of(data: bytes) -> str:
    """The name of the file that keeps a long text."""
    return digest(data)
