"""What the verifier is asked to do, and what it tells while it does it, as plain data."""

from typing import TypeAlias

from msgspec import Struct

from raymond.language.check import Check
from raymond.machine.step_events import Verdict

TAIL = 8 << 10
"""Characters of the end of an output that agents and people are told."""


class Assignment(Struct, frozen=True, kw_only=True):
    """The checks of one gate."""

    checks: tuple[Check, ...]
    timeout: float
    """Seconds for one command that has no time of its own."""
    reruns: int
    """How often a red command runs again before it counts."""
    environment: dict[str, str]
    """What commands find in their environment."""
    key: str = ""
    """The mark of the run."""
    step: int = 0
    """Its own number: what a command left running is ended after it."""
    turns: tuple[int, ...] = ()
    """The steps whose leftovers are ended first."""


class Began(Struct, frozen=True, tag="began"):
    """A command was started; `again` for the how manyth time beyond the first."""

    command: str
    again: int = 0


class Printed(Struct, frozen=True, tag="printed"):
    """What it printed next."""

    text: str


class Ended(Struct, frozen=True, tag="ended"):
    """A command ended."""

    exit_code: int | None
    seconds: float


class Found(Struct, frozen=True, kw_only=True, tag="found", omit_defaults=True):
    """What the gate has shown; the last thing that is told."""

    verdict: Verdict
    command: str = ""
    """The last command that ran."""
    exit_code: int | None = None
    seconds: float = 0.0
    flaky: bool = False
    reason: str = ""
    output: str = ""
    """The end of what a red command printed."""


Told: TypeAlias = Began | Printed | Ended | Found
