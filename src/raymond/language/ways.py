"""Where agents work: in the person's directory, in a copy of it, or in a copy that they cannot leave."""

from typing import Literal, TypeAlias

Way: TypeAlias = Literal["here", "copy", "isolated"]
WAYS: tuple[Way, ...] = ("here", "copy", "isolated")
"""From the widest to the narrowest."""
NETS = ("on", "off")


def narrowed(run: str, state: str) -> Way:
    """Where a state works: where its run does, or more narrowly."""
    return WAYS[max(WAYS.index(one) for one in (run or "here", state or "here"))]


def widens(run: str, state: str) -> bool:
    """Whether a state asks for more than its run gives."""
    return bool(state) and narrowed(run, state) != state
