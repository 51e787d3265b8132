"""The limits of a run, and which of them are reached."""

from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from raymond.machine.events import LimitsChanged, RunStarted

LimitName: TypeAlias = Literal["budget", "iterations", "turns", "unpriced", "time", "wait"]
UNPRICED_TURNS = 200
"""Turns of unknown cost after which a run stops unless `max_turns` was set."""


class Usage(Struct, frozen=True):
    """What a run has used."""

    iterations: int = 0
    cost: float = 0.0
    turns: int = 0
    unpriced: int = 0
    """Turns of unknown cost."""
    time: float = 0.0
    """Seconds for which it was driven."""


class Limits(Struct, frozen=True, omit_defaults=True):
    """The limits of a run, as the events name them: None where nothing was set, 0 for no limit."""

    budget: float | None = None
    max_iterations: int | None = None
    max_turns: int | None = None
    max_time: float | None = None

    def over(self, other: "Limits") -> "Limits":
        """These limits, and those of `other` where these are not set."""
        return replace(other, **{name: value for name in NAMES if (value := getattr(self, name)) is not None})

    def reached(self, used: Usage) -> LimitName | None:
        """The first limit that `used` has reached."""
        if self.max_iterations and used.iterations >= self.max_iterations:
            return "iterations"
        if self.budget and used.cost >= self.budget:
            return "budget"
        if self.max_turns and used.turns >= self.max_turns:
            return "turns"
        if not self.max_turns and used.unpriced >= UNPRICED_TURNS:
            return "unpriced"
        if self.max_time and used.time >= self.max_time:
            return "time"
        return None

    def amount(self, name: LimitName) -> float:
        """How much the limit called `name` allows."""
        if name == "unpriced":
            return float(UNPRICED_TURNS)
        field = next((field for field in NAMES if field.endswith(name)), "")
        return float(getattr(self, field, None) or 0.0)


NAMES = Limits.__struct_fields__


def limits_of(event: RunStarted | LimitsChanged) -> Limits:
    """The limits that an event sets."""
    return Limits(**{name: getattr(event, name) for name in NAMES})
