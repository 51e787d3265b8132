"""What agents may do unasked: a workflow may narrow what the person who starts it allows, never widen it."""

from collections.abc import Sequence

from msgspec import Struct

from raymond.language.policy import Policy
from raymond.machine.events import RunStarted

DEFAULT = "acceptEdits"
RANKS = {"plan": 0, "dontAsk": 1, "default": 1, DEFAULT: 2, "bypassPermissions": 3}
"""Every permission mode; a higher rank allows more."""
_SYNTAX = frozenset("(),")
"""Letters that end a pattern of tools: a gate with one of them names no tool, and must not name another one."""


class Rights(Struct, frozen=True):
    """What one turn may do."""

    mode: str
    allowed: tuple[str, ...]
    denied: tuple[str, ...]
    skip: bool


def of(start: RunStarted, policy: Policy, given: Sequence[str] | None = None) -> Rights:
    """The rights of a turn: the person's, who may have given more tools since the start, narrowed by the state."""
    allowed = tuple(start.allowed_tools if given is None else given)
    if policy.allowed_tools:
        allowed = tuple(tool for tool in allowed if tool in policy.allowed_tools)
    # The command that checks the work may be run by who does the work.
    gates = tuple(f"Bash({command}:*)" for command in policy.gate if not _SYNTAX & set(command))
    narrowed = bool(policy.permission_mode or policy.allowed_tools)
    given_mode = start.permission_mode or DEFAULT
    mode = policy.permission_mode or given_mode
    if RANKS[mode] > RANKS[given_mode] and not start.skip_permissions:
        mode = given_mode  # refused before the run began; files that changed since widen nothing either
    return Rights(
        mode,
        (*allowed, *(tool for tool in gates if tool not in allowed)),
        policy.disallowed_tools,
        start.skip_permissions and not narrowed,
    )
