"""Failure classes and what follows from each: the one table, as values."""

from typing import Literal, TypeAlias, get_args

from msgspec import Struct

from raymond import durations

Kind: TypeAlias = Literal[
    "limit",
    "overload",
    "auth",
    "billing",
    "silent",
    "crash",
    "context",
    "refusal",
    "unreadable",
    "script",
    "time",
    "setup",
    "session",
    "cap",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
UNCOUNTED = frozenset({"limit", "overload"})
"""What the infrastructure did: no step of the work, no turn, no attempt."""
REMINDERS = 3
"""How often a visit is asked again for a readable reply."""
PROMPT_RETRIES = 3
SCRIPT_RETRIES = 0
SILENCE = 600.0
"""Seconds without output after which a step is stopped, unless its policy says otherwise."""
OVERLOAD_WAITS = (1.0, 5.0, 15.0, 60.0)
OVERLOAD_REST = 300.0
LIMIT_LONGEST = 400 * 86400.0
"""Seconds; a reset that is further away is a mistake of who said it."""
LIMIT_UNKNOWN = 900.0
"""Seconds to wait for a usage limit that does not say when it ends."""
TOOL_TIME = 1800.0
"""Seconds a tool may run without a sign of life, unless the policy says otherwise."""


class Response(Struct, frozen=True):
    """What follows from a failed step."""

    again: bool = False
    """The visit is tried again."""
    charged: bool = False
    fresh: bool = False
    closes: bool = False
    """The backend takes no turns for a while, or until a person has looked."""


def respond(kind: str, *, failures: int, retries: int, freshened: bool) -> Response:
    """What follows from a step that failed with `kind` after `failures` charged ones."""
    match kind:
        case "limit" | "overload":
            return Response(again=True, closes=True)
        case "auth" | "billing":
            return Response(closes=True)
        case "silent" | "crash":
            return Response(again=failures < retries, charged=True)
        case "context" | "refusal":
            return Response(again=not freshened, fresh=not freshened)
        case _:
            return Response(charged=True)


def too_long(backend: str, wait: float, most: float) -> str:
    """Why a run does not wait for a usage limit."""
    length, allowed = durations.brief(wait), durations.brief(most)
    return f"{backend} is closed by its usage limit for {length}, longer than max_wait ({allowed})"


def overload_wait(tries: int) -> float:
    """Seconds until the next try after `tries` of them failed."""
    return OVERLOAD_WAITS[tries] if tries < len(OVERLOAD_WAITS) else OVERLOAD_REST
