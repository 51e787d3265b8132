"""Who asks something of a run, as far as the system tells, and what a step may ask."""

from collections.abc import Container
from typing import Literal

from msgspec import Struct

from raymond.language.refusal import Refusal

FOR_STEPS = ("stop", "pause")
"""What a step may ask of its own run."""

_UNSEEN = "ask again and wait for the reply, from a shell that is not in a PID namespace of its own"
_HINT = "a person does that, from a shell that no step has started"


class Sender(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A process that asks something of a run; what is said here comes from the kernel, not from the process."""

    way: Literal["face", "socket", "command", "inbox"]
    """Typed where the run is driven, over the driver's socket, by a command while nobody drives the run, or left in its
    inbox, which does not tell who did it."""
    pid: int = 0
    terminal: str = ""
    """The terminal it was typed on; empty when it was not."""
    command: str = ""
    steps: list[str] = []
    """The runs whose steps the process belongs to, by their keys."""
    unknown: bool = False
    """It could not be seen where the process comes from, or the process was gone: it may have been a step."""

    @property
    def may_be_step(self) -> bool:
        """Whether a step of a run asks, or nobody can tell."""
        return bool(self.steps) or self.unknown

    @property
    def is_person(self) -> bool:
        """Whether it was typed on a terminal, and not by anything that a step started."""
        return self.way != "inbox" and bool(self.terminal) and not self.may_be_step


def who(sender: Sender | None) -> Literal["", "step", "unknown"]:
    """Who asked, if it was not a person or a program of theirs."""
    if sender is None:
        return ""
    if sender.steps:
        return "step"
    return "unknown" if sender.unknown or sender.way == "inbox" else ""


def no_step(what: str) -> Refusal:
    """Refuse what no step may do, not even with a run that was started in it."""
    return Refusal("from_step", f"`{what}` was asked for by a step of a run", _HINT)


def barred(key: str, inside: Container[str], kind: str, sender: Sender | None) -> Refusal | None:
    """Why this sender may not ask for `kind` of the run `key`, which was started in steps of the runs `inside`.

    A step may do anything with the runs that were started in it, may stop its own run, and nothing else.
    """
    if sender and sender.unknown and kind not in FOR_STEPS:
        return Refusal("from_step", f"`{kind}` was asked for by a process whose origin cannot be seen", _UNSEEN)
    if sender is None or all(one in inside for one in sender.steps):
        return None
    its_own = key in sender.steps
    if its_own and kind in FOR_STEPS:
        return None
    whose = "this run" if its_own else "another run"
    return Refusal("from_step", f"`{kind}` was asked for by a step of {whose}", _HINT)
