"""The table of failure classes and what follows from each."""

from typing import Literal, TypeAlias, get_args

from msgspec import Struct

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
    "machine",
]
KINDS: tuple[Kind, ...] = get_args(Kind)


class FailureClass(Struct, frozen=True):
    """What follows from one kind of failure."""

    retried: Literal["never", "always", "charged", "fresh"] = "never"
    """Whether the visit is tried again: always, as often as `retries` allows, or once without its conversation."""
    closes: Literal["", "for a while", "for a person"] = ""
    """Whether the backend takes no turns for a while, or until a person resumes the run."""
    counted: bool = True
    """Whether it counts as a step, turn and attempt; infrastructure failures do not."""
    begun: bool = True
    """Whether anything was started; if nothing was, the visit is as it was before."""


CLASSES: dict[Kind, FailureClass] = {
    "limit": FailureClass(retried="always", closes="for a while", counted=False),
    "overload": FailureClass(retried="always", closes="for a while", counted=False),
    "auth": FailureClass(closes="for a person"),
    "billing": FailureClass(closes="for a person"),
    "silent": FailureClass(retried="charged"),
    "crash": FailureClass(retried="charged"),
    "context": FailureClass(retried="fresh"),
    "refusal": FailureClass(retried="fresh"),
    "unreadable": FailureClass(),
    "script": FailureClass(),
    "time": FailureClass(),
    "setup": FailureClass(),
    "session": FailureClass(),
    "cap": FailureClass(),
    "machine": FailureClass(retried="always", closes="for a while", counted=False, begun=False),
}
REPORTED: tuple[Kind, ...] = tuple(kind for kind in KINDS if CLASSES[kind].begun)
"""The classes that a backend may report: it was started."""

REMINDERS = 3
"""How often a visit is asked again for a readable reply."""
PROMPT_RETRIES = 3
SCRIPT_RETRIES = 0
DEATHS = 5
"""How often in a row a driver may die during a visit before the visit counts as failed."""
SILENCE = 600.0
"""Seconds without output after which a step is stopped, unless its policy says otherwise."""
TOOL_TIME = 1800.0
"""Seconds a tool may run without output, unless the policy says otherwise."""
OVERLOAD_WAITS = (1.0, 5.0, 15.0, 60.0)
OVERLOAD_REST = 300.0
WAITS = (1.0, 5.0, 15.0)
"""Seconds until a step is tried again that crashed, or that the machine had no room for; the last one is repeated."""
LIMIT_UNKNOWN = 900.0
"""Seconds to wait for a usage limit that does not say when it ends."""
LIMIT_LONGEST = 400 * 86400.0
"""Seconds; a reset time further away than this is taken as a mistake of the program that reported it."""

LONGEST = 4 << 10
"""Characters of an error: it is journaled, shown and sent to models."""


def brief(error: str) -> str:
    """An error as it is journaled; what a step or a program wrote may be part of it."""
    return error if len(error) <= LONGEST else error[: LONGEST - 3] + "..."


class Response(Struct, frozen=True):
    """What follows from a failed step."""

    again: bool = False
    """The visit is tried again."""
    charged: bool = False
    fresh: bool = False
    closes: bool = False
    """The backend takes no turns for a while, or until a person resumes the run."""
    wait: float = 0.0
    """Seconds until the visit is tried again."""


def respond(kind: Kind, *, failures: int, retries: int, freshened: bool) -> Response:
    """What follows from a step that failed with `kind` after `failures` charged ones."""
    row = CLASSES[kind]
    if row.closes:
        return Response(again=row.retried == "always", closes=True)
    if row.retried == "charged":
        again = failures < retries
        # Silence has taken its time already; what crashes at once would use up all its attempts in a moment.
        return Response(again=again, charged=True, wait=wait_after(failures) if again and kind == "crash" else 0.0)
    if row.retried == "fresh":
        return Response(again=not freshened, fresh=not freshened)
    return Response(charged=True)


def overload_wait(tries: int) -> float:
    """Seconds until the next try after `tries` tries failed."""
    return OVERLOAD_WAITS[tries] if tries < len(OVERLOAD_WAITS) else OVERLOAD_REST


def wait_after(tries: int) -> float:
    """Seconds until a step is tried again after `tries` earlier tries have failed."""
    return WAITS[min(tries, len(WAITS) - 1)]


def opens_at(kind: Kind, retry_at: float, now: float, tries: int) -> float:
    """When to try a backend again that failed with `kind` and may have reported a reset time.

    A reset time that has already passed is not the same as an unknown one: retry soon instead of waiting 15 minutes.
    """
    if now < retry_at < now + LIMIT_LONGEST:
        return retry_at
    unknown = not retry_at or retry_at >= now + LIMIT_LONGEST
    return now + (LIMIT_UNKNOWN if kind == "limit" and unknown else overload_wait(tries))
