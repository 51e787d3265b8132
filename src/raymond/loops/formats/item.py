"""One item of a queue, as a value."""

from typing import Literal, TypeAlias

from msgspec import Struct

from raymond.language.check import Check

Kind: TypeAlias = Literal["command", "none", "blocked", "task-loop", "manual"]
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
    may: tuple[str, ...] = ()


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
    id: str = ""
    """Of a task or a story."""
    place: str = ""
    """The document that it is in, relative to the folder of documents; empty for a session log."""
    checks: tuple[Check, ...] = ()
    """How it is checked, where one command does not say all of it."""
    criteria: tuple[str, ...] = ()
    """What a person judges it by."""
    tasks: tuple[str, ...] = ()
    """The tasks that are done when it is."""
    group: str = ""
    """The story that it belongs to."""
    is_claimed: bool = False
    """Somebody says that it is done: it is checked before an agent is paid for it."""
    is_plan: bool = False
    """An agent is to say which tasks it takes."""

    @property
    def is_task(self) -> bool:
        """Whether it is a task of a spec, and nothing else."""
        return self.tasks == (self.id,)

    @property
    def commands(self) -> tuple[Check, ...]:
        """The commands that check it."""
        if self.checks or self.verification.kind != "command":
            return self.checks
        return (Check(run=self.verification.command),)


class Doubt(Struct, frozen=True):
    """Something in a queue that may not mean what its author thinks."""

    message: str
    line: int
    """Counted from 1."""
    place: str = ""
    """The document, relative to the folder of documents; empty for a session log."""
