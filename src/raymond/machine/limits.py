"""The limits of a run, and which of them are reached."""

from typing import Literal, TypeAlias

from msgspec import Struct

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
    """The limits of a run: None where nothing was set, 0 for no limit."""

    budget: float | None = None
    iterations: int | None = None
    turns: int | None = None
    time: float | None = None

    def over(self, other: "Limits") -> "Limits":
        """These limits, and those of `other` where these are not set."""
        return Limits(
            other.budget if self.budget is None else self.budget,
            other.iterations if self.iterations is None else self.iterations,
            other.turns if self.turns is None else self.turns,
            other.time if self.time is None else self.time,
        )

    def reached(self, used: Usage) -> LimitName | None:
        """The first limit that `used` has reached."""
        if self.iterations and used.iterations >= self.iterations:
            return "iterations"
        if self.budget and used.cost >= self.budget:
            return "budget"
        if self.turns and used.turns >= self.turns:
            return "turns"
        if not self.turns and used.unpriced >= UNPRICED_TURNS:
            return "unpriced"
        if self.time and used.time >= self.time:
            return "time"
        return None

    def amount(self, name: LimitName) -> float:
        """How much the limit called `name` allows."""
        amounts = {
            "budget": self.budget,
            "iterations": self.iterations,
            "turns": self.turns,
            "unpriced": UNPRICED_TURNS,
            "time": self.time,
        }
        return float(amounts.get(name) or 0.0)


def limits_of(event: RunStarted | LimitsChanged) -> Limits:
    """The limits that an event sets."""
    return Limits(event.budget, event.max_iterations, event.max_turns, event.max_time)
