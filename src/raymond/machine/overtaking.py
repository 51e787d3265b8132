"""Which requests that were left for a driver that died come too late, because of what was asked after them.

No clock is asked: what lies in the inbox when nobody drives the run is older than what is asked now.
"""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from raymond.machine import limits, requests
from raymond.machine.agent import ASKING
from raymond.machine.events import Event, RequestTaken
from raymond.machine.placed_workflow import PlacedWorkflow
from raymond.machine.requests import Request
from raymond.machine.run import Run

_DECIDED = {
    "stop": "the run was stopped",
    "cancel": "the run was cancelled",
    "answer": "{} was answered",
    "pause": "{} was paused",
    "retry": "{} was retried",
    "move": "{} was moved",
    "result": "{} was given a result",
    "give_up": "{} was given up",
    "limits": "the limits were changed",
}
"""What has happened when a request was taken."""
_ONCE = ("answer", "move", "result", "give_up")
"""What a person asks for again when nothing seems to follow, and what must not be done twice."""


def overtaken(run: Run, placed: PlacedWorkflow, left: Request, by: Request, now: float = 0.0) -> list[Event]:
    """What becomes of a request that was `left`, when `by` is taken after it; nothing when both hold.

    An order about an agent is refused when `by` decides about the same agent, also when it is the same order again: it
    is obeyed once. So is a stop or cancel that is asked for again, and a stop by a cancel. Of changed limits those
    hold that `by` does not set.
    """
    if left.id == by.id:
        return []
    if left.kind == "limits":
        return _limits(run, placed, left, by, now)
    if left.kind in ("stop", "cancel"):
        return [_refused(left, by)] if by.kind in (left.kind, "cancel") else []
    name = next((name for name in _about(run, left) if _decides(run, by, name)), None)
    return [] if name is None else [_refused(left, by, name)]


def repeated(
    run: Run, placed: PlacedWorkflow, left: Sequence[Request], now: float
) -> Iterator[tuple[Request, Request]]:
    """Of requests that lie in the inbox together, the oldest first: those of which the same is asked again later."""
    last: dict[tuple[str, str], Request] = {}
    for request in reversed(left):
        if request.kind not in _ONCE or request.id in run.requests:
            continue
        what = (request.kind, request.agent)
        if what in last:
            yield request, last[what]
        elif requests.problem(run, placed, request, now) is None:
            last[what] = request


def _refused(left: Request, by: Request, name: str = "") -> RequestTaken:
    what = _DECIDED[by.kind].format(name)
    return RequestTaken(request=left.id, kind=left.kind, problem=f"too late: {what} first", sender=left.sender)


def _about(run: Run, left: Request) -> list[str]:
    """The agents that a request can be about."""
    return [left.agent] if left.agent else [agent.id for agent in requests.asking(run)]


def _decides(run: Run, request: Request, name: str) -> bool:
    """Whether a request that is taken says what becomes of an agent."""
    if request.kind in ("stop", "cancel"):
        return True
    if request.kind == "answer" and not request.agent:
        return name in run.agents and run.agents[name].status == ASKING
    return request.kind in _DECIDED and request.agent == name


def _limits(run: Run, placed: PlacedWorkflow, left: Request, by: Request, now: float) -> list[Event]:
    rest = _without(left, by)
    if by.kind != "limits" or rest == left:
        return []
    if rest == Request(id=left.id, kind="limits", sender=left.sender, given=left.given):
        return [_refused(left, by)]
    return requests.take(run, placed, rest, now)


def _without(left: Request, by: Request) -> Request:
    """Changed limits without those that `by` sets."""
    return replace(
        left,
        **{name: None for name in limits.LIMIT_NAMES if getattr(by, name) is not None},
        allowed_tools=[tool for tool in left.allowed_tools if tool not in by.allowed_tools],
        roots=[root for root in left.roots if root not in by.roots],
        on_ask="" if by.on_ask else left.on_ask,
    )
