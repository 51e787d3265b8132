"""One item of a queue, as a value."""

from typing import Literal, TypeAlias

from msgspec import Struct

Kind: TypeAlias = Literal["command", "none", "blocked", "task-loop"]
OnFail: TypeAlias = Literal["retry", "create-fix-task", "skip", "pause"]


class Verification(Struct, frozen=True):
    """How an item is checked."""

    kind: Kind = "none"
    command: str = ""
    reason: str = ""
    """Why it is blocked."""


class Metadata(Struct, frozen=True):
    """What the indented lines under an item set."""

    timeout: float | None = None
    """Seconds."""
    retries: int | None = None
    on_fail: OnFail | None = None
    tasks: tuple[str, ...] = ()
    seal: tuple[str, ...] = ()
    unseal: tuple[str, ...] = ()


class Item(Struct, frozen=True):
    """Something to be done, and where it is written: `raw` is `text[start:end]`."""

    title: str
    verification: Verification
    priority: int
    """1 comes first."""
    metadata: Metadata
    details: str
    """The text under the title, for the agent."""
    raw: str
    start: int
    end: int
    ticked: bool = False
    proposed: bool = False
    """An agent added it."""


class Doubt(Struct, frozen=True):
    """Something in a queue that may not mean what its author thinks."""

    message: str
    line: int
    """Counted from 1."""
