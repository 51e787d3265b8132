"""What the next driver does with the requests that were left for one that died."""

from collections.abc import Sequence

from msgspec import Struct

from raymond.machine.conductor import Conductor
from raymond.machine.events import RequestTaken
from raymond.machine.placed_workflow import PlacedWorkflow
from raymond.machine.requests import Request
from raymond.machine.run import Run
from raymond.machine.sender import is_heard

UNSIGNED = "it does not tell who it comes from"


class Fate(Struct, frozen=True):
    """What becomes of one request."""

    request: Request
    refusal: str = ""
    """Why it is refused; empty when it is obeyed."""
    is_put_aside: bool = False
    """It is not even journaled, because anybody may have left it."""


def fates(
    run: Run, placed: PlacedWorkflow | None, left: Sequence[Request], now: float, *, knows_senders: bool
) -> list[Fate]:
    """Try it on `run`, which is changed by that: what a driver does that finds these, the oldest first.

    `knows_senders`: see sender.is_heard. Without a workflow nobody can tell what is refused later.
    """
    heard = {one.kind: is_heard(one.kind, knows_senders=knows_senders) for one in left}
    problems = _problems(run, placed, [one for one in left if heard[one.kind]], now) if placed else {}
    return [
        Fate(one, problems.get(one.id, "")) if heard[one.kind] else Fate(one, UNSIGNED, is_put_aside=True)
        for one in left
    ]


def _problems(run: Run, placed: PlacedWorkflow, heard: Sequence[Request], now: float) -> dict[str, str]:
    conductor = Conductor(run, placed)
    conductor.ask_left(heard, now)
    events = (event for decision in conductor.orders().decisions for event in decision.events)
    return {event.request: event.problem for event in events if isinstance(event, RequestTaken)}
