"""What agents may do without asking: a workflow can narrow the rights given by its caller, never widen them."""

from msgspec import Struct

from raymond.language.policy import Policy
from raymond.machine.events import RunStarted

DEFAULT = "acceptEdits"
RANKS = {"plan": 0, "dontAsk": 1, "default": 1, "manual": 1, DEFAULT: 2, "auto": 3, "bypassPermissions": 4}
"""Every permission mode; a higher rank allows more. In `auto` a model decides, which may allow any tool."""


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


def narrow(given: Rights, policy: Policy) -> Rights:
    """The rights of a turn: those the caller gave, narrowed by the state."""
    allowed = given.allowed
    if policy.allowed_tools:
        allowed = tuple(tool for tool in allowed if tool in policy.allowed_tools)
    narrowed = bool(policy.permission_mode or policy.allowed_tools)
    given_mode = given.mode or DEFAULT
    mode = policy.permission_mode or given_mode
    if RANKS[mode] > RANKS[given_mode] and not given.skip:
        mode = given_mode  # refused at the start; files that changed since then widen nothing either
    return Rights(mode, allowed, policy.disallowed_tools, given.skip and not narrowed)
