"""What a run may use, and what its agents may do without asking: limits, and rights.

A workflow can narrow the rights given by its caller, never widen them.
"""

from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from raymond.machine.events import LimitsChanged, RunStarted

if TYPE_CHECKING:
    from raymond.language.policy import Policy

LimitName: TypeAlias = Literal["budget", "iterations", "turns", "unpriced", "time", "wait"]
UNPRICED_TURNS = 200
"""Turns of unknown cost after which a run stops unless `max_turns` was set."""

DEFAULT_MODE = "acceptEdits"
MODE_RANKS = {"plan": 0, "dontAsk": 1, "default": 1, "manual": 1, DEFAULT_MODE: 2, "auto": 3, "bypassPermissions": 4}
"""Every permission mode; a higher rank allows more. In `auto` a model decides, which may allow any tool."""


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
        return replace(other, **{name: value for name in LIMIT_NAMES if (value := getattr(self, name)) is not None})

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
        field = next((field for field in LIMIT_NAMES if field.endswith(name)), "")
        return float(getattr(self, field, None) or 0.0)


LIMIT_NAMES = Limits.__struct_fields__


def limits_of(event: RunStarted | LimitsChanged) -> Limits:
    """The limits that an event sets."""
    return Limits(**{name: getattr(event, name) for name in LIMIT_NAMES})


# Rights


class Rights(Struct, frozen=True):
    """What agents may do without asking."""

    mode: str = ""
    """The permission mode; empty for the default."""
    allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    skip: bool = False
    """Permission checks are off."""


def rights_of(start: RunStarted) -> Rights:
    """The rights that the caller of a run gives its agents."""
    return Rights(start.permission_mode, tuple(start.allowed_tools), (), start.skip_permissions)


def narrowed_rights(given: Rights, policy: "Policy") -> Rights:
    """The rights of a turn: those the caller gave, narrowed by the state."""
    allowed = given.allowed
    if policy.allowed_tools:
        allowed = tuple(tool for tool in allowed if tool in policy.allowed_tools)
    narrowed = bool(policy.permission_mode or policy.allowed_tools)
    given_mode = given.mode or DEFAULT_MODE
    mode = policy.permission_mode or given_mode
    if MODE_RANKS[mode] > MODE_RANKS[given_mode] and not given.skip:
        mode = given_mode  # refused at the start; files that changed since then widen nothing either
    return Rights(mode, allowed, policy.disallowed_tools, given.skip and not narrowed)
