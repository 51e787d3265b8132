"""Who asks something of a run, as far as the system tells, and what a step may ask."""

from collections.abc import Container, Iterable
from typing import Literal

from msgspec import Struct

from raymond.language.refusal import Refusal
from raymond.machine import prices

FOR_STEPS = ("stop", "pause")
"""What a step may ask of its own run."""

_UNSEEN = "ask again and wait for the reply, from a shell that is not in a PID namespace of its own"
_GONE = "the process that drives it has ended: resume it first"
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

    agent: str = ""
    """The agent's program that it was started by, inside of a run or outside."""

    @property
    def may_be_step(self) -> bool:
        """Whether a step of a run asks, or nobody can tell."""
        return bool(self.steps) or self.unknown

    @property
    def is_person(self) -> bool:
        """Whether it was typed on a terminal, and not by anything that a step or an agent started."""
        return bool(self.terminal) and self.may_decide

    @property
    def may_decide(self) -> bool:
        """Whether it is seen where it comes from, and neither a step nor an agent's program started it."""
        return self.way != "inbox" and not self.may_be_step and not self.agent


class Given(Struct, frozen=True):
    """What the run has whose step asks, and so can pass on."""

    budget: float = 0.0
    """Dollars; 0 for no limit."""
    tools: tuple[str, ...] = ()
    skip: bool = False
    """Permission checks are off."""


def beyond(given: Given | None, budget: float | None, tools: Iterable[str]) -> Refusal | None:
    """Why a step may not set these limits for a run that was started in it."""
    if given is None:
        return Refusal("from_step", "the run of this step cannot be found, so no limits can be changed from it", _GONE)
    if budget is not None and given.budget and not 0 < budget <= given.budget:
        what = f"a step cannot set a budget above {prices.show(given.budget)}"
        return Refusal("from_step", what, "that is what the outer run has")
    more = [] if given.skip else [tool for tool in tools if tool not in given.tools]
    if more:
        return Refusal("from_step", f"a step cannot allow the tool `{more[0]}`", "the outer run does not have it")
    return None


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


def is_heard(kind: str, *, knows_senders: bool) -> bool:
    """Whether a driver takes a request out of its inbox, where a file does not tell who wrote it.

    `knows_senders`: others can ask where they are seen, so that only what any step may ask for is taken otherwise.
    """
    return kind in FOR_STEPS or not knows_senders


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
