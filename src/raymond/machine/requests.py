"""What a person asks of a run from outside, and what follows from it."""

from collections.abc import Iterable, Mapping
from copy import copy
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from raymond import amounts
from raymond.language import choices
from raymond.language.refusal import Refusal
from raymond.language.refusal import cut as cut_short
from raymond.machine import gates, handled_failure, limits, transitions
from raymond.machine.agent import ASKING, FAILED, PAUSED, RUNNING, WAITING, Agent
from raymond.machine.events import (
    UNRECORDED,
    AgentMoved,
    AgentPaused,
    AgentRetried,
    BackendOpened,
    ClockSet,
    Event,
    LimitsChanged,
    Program,
    Recording,
    RequestTaken,
    RunResumed,
    RunStopped,
    StepInterrupted,
)
from raymond.machine.evolve import evolve
from raymond.machine.placed_workflow import PlacedWorkflow
from raymond.machine.run import CANCELLED, Run, shut
from raymond.machine.schedule import owed, reached, too_long, wake_at
from raymond.machine.sender import Given, Sender, barred, beyond, no_step, who

_LAG = 1.0
"""Seconds; a clock that shows less than the journal by more than this was set back while nobody drove the run."""
_LONGEST = 1000
"""Characters of the reason for a refusal."""
_SHOWN = 10
"""Agents that are named in place of one that does not exist."""

Kind: TypeAlias = Literal[
    "answer", "stop", "pause", "retry", "move", "result", "give_up", "limits", "resume", "cancel", "accept", "reject"
]


class Request(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing asked; its `id` makes a second delivery harmless."""

    id: str
    kind: Kind
    agent: str = ""
    text: str = ""
    state: str = ""
    now: bool = False
    budget: float | None = None
    max_iterations: int | None = None
    max_time: float | None = None
    max_turns: int | None = None
    allowed_tools: list[str] = []
    roots: list[str] = []
    on_ask: Literal["", "wait", "fail"] = ""
    """Of changed limits: what becomes of questions from now on."""
    fresh: bool = False
    """Of a retry: without the conversation."""
    digest: str = ""
    """Of an acceptance: the changes that the person saw."""
    question: int = 0
    """Of an answer: the number of the question it is about; 0 for whichever is open."""
    sender: Sender | None = None
    given: Given | None = None
    """Of changed limits that a step asks for: what its run has."""

    @property
    def ends_steps(self) -> bool:
        """Whether running steps are ended for it."""
        return self.kind == "cancel" or (self.kind == "stop" and self.now)

    def words(self) -> list[str]:
        """All that somebody has written in it."""
        return [self.id, self.agent, self.text, self.state, *self.allowed_tools, *self.roots]


def take(run: Run, placed: PlacedWorkflow, request: Request, now: float = 0.0) -> list[Event]:
    """The events of `request`, made at `now`; none when it was taken before."""
    if request.id in run.requests:
        return []
    follow, sender = _follow(run, placed, request, now), request.sender
    if isinstance(follow, Refusal):
        return [RequestTaken(request=request.id, kind=request.kind, problem=follow.reason, sender=sender)]
    return [RequestTaken(request=request.id, kind=request.kind, sender=sender), *follow]


def problem(run: Run, placed: PlacedWorkflow, request: Request, now: float = 0.0) -> Refusal | None:
    """Why `request` would be refused at `now`; one that was taken before is not taken again."""
    if request.id in run.requests:
        return None
    follow = _follow(run, placed, request, now)
    return follow if isinstance(follow, Refusal) else None


def cut(run: Run, name: str, spent: Mapping[str, Any]) -> list[Event]:
    """The end of a step that was running when its driver died, so that a person can say what becomes of the agent."""
    agent = run.agents.get(name)
    if not agent or agent.status != RUNNING:
        return []
    return [StepInterrupted(agent=agent.id, step=agent.step, **spent)]


def resume(
    run: Run,
    version: str,
    *,
    now: float = 0.0,
    at_once: bool = False,
    fresh: bool = False,
    retries: bool = True,
    driven: float = 0.0,
    programs: Iterable[Program] = (),
    recording: Recording = UNRECORDED,
) -> list[Event]:
    """A driver resumes the run: failed and paused agents try again, a backend that a person had to open is open.

    After the death of a driver it may be a supervisor that resumes: what ran continues, and neither what has failed
    nor what a person paused is touched, unless one of the other arguments shows that somebody wants it. The same holds
    without `retries`: somebody has just said what they want of one agent, and that is all they asked for.

    With `at_once` one turn tries a backend that is closed until later, as when that time has come; with `fresh` failed
    and paused agents start their visit again without their conversation. `driven`: see RunResumed.
    """
    if run.final_status == CANCELLED:
        return []  # somebody left that for this driver to find
    resumed = RunResumed(version=version, driven=driven, programs=list(programs), recording=recording)
    events: list[Event] = [resumed]
    if now and now < run.driven_until - _LAG:
        # A command may have been given since, by a clock that was put right.
        events.insert(0, ClockSet(seconds=round(now - run.driven_until, 3)))
    died = not retries or (driver_died(run) and not (at_once or fresh))
    for name, closed in run.closed.items():
        if closed.kind == "machine" or shut(run, name):
            events.append(BackendOpened(backend=name))
        elif at_once and closed.until:
            events.append(BackendOpened(backend=name, probing=True))
    if run.statuses.get(FAILED) or run.statuses.get(PAUSED):
        stuck = [agent for agent in run.agents.values() if agent.status in (FAILED, PAUSED)]
        events += [AgentRetried(agent=agent.id, fresh=fresh) for agent in stuck if _is_retried(run, agent, died)]
    stop = reached(run, driven=driven) or (None if at_once else _closed_too_long(run, now))
    return [*events, stop] if stop else events


def _is_retried(run: Run, agent: Agent, died: bool) -> bool:
    """Whether an agent that has failed or is paused tries again when its driver has left, or `died`."""
    stuck = agent.visit.stuck
    if agent.visit.given_up or (stuck and stuck.kind == "review"):
        return False  # a person says what becomes of it
    if not died or not stuck:
        return True
    if stuck.kind == "denied":
        return set(stuck.tools) <= set(run.rights.allowed)
    return stuck.kind in ("auth", "billing", "overload")


def driver_died(run: Run) -> bool:
    """Whether the driver of a run died: it left something undone that it would have done."""
    if run.stop or run.final_status:
        return False
    if run.statuses.get(RUNNING):
        return True
    # What is to be done may also be what a person asked for after the driver had left.
    is_last = run.driven_until == run.now or run.is_cut
    return is_last and bool(owed(run) or wake_at(run) is not None)


def _closed_too_long(run: Run, now: float) -> RunStopped | None:
    for backend, closed in run.closed.items():
        if closed.kind == "limit" and closed.until - now > run.start.max_wait:
            return too_long(run, backend, closed.until - now)
    return None


def asking(run: Run) -> list[Agent]:
    """The agents that wait for a person's answer."""
    return [agent for agent in run.agents.values() if agent.status == ASKING]


def _follow(run: Run, placed: PlacedWorkflow, request: Request, now: float) -> list[Event] | Refusal:
    follow = _whole(run, placed, request, now)
    if isinstance(follow, Refusal) and len(follow.reason) > _LONGEST:
        # Names in it are those that whoever asked has chosen, and the journal keeps it.
        return replace(follow, reason=f"{follow.reason[:_LONGEST]}…")
    return follow


def _whole(run: Run, placed: PlacedWorkflow, request: Request, now: float) -> list[Event] | Refusal:
    refused = barred(run.start.key, run.start.inside, request.kind, request.sender)
    if refused:
        return refused
    if run.final_status == CANCELLED:
        return Refusal("run_ended", f"{run.start.workflow_id} was cancelled", _shown(run))
    match request.kind:
        case "cancel":
            if run.is_over:
                return Refusal("run_ended", f"{run.start.workflow_id} has ended", _shown(run))
            return [RunStopped(kind="cancelled", at_once=True, by=who(request.sender))]
        case "stop":
            if run.final_status:
                return Refusal("run_ended", f"{run.start.workflow_id} has ended", _shown(run))
            stopped = run.stop and run.stop.kind in ("stop", "limit")
            return [] if stopped else [RunStopped(kind="stop", at_once=request.now, by=who(request.sender))]
        case "limits":
            return _limits(run, request)
        case "resume":
            return []  # whoever may do that drives the run; only that somebody else tried is a fact
        case "answer":
            return _answer(run, placed, request, now)
        case _:
            return _agent(run, placed, request)


def _shown(run: Run) -> str:
    return f"`raymond logs {run.start.workflow_id}` shows what happened"


def _limits(run: Run, request: Request) -> list[Event] | Refusal:
    wrong = _bad_limit(request)
    if wrong:
        return Refusal("value", f"`{wrong}` must be a number, 0 to {amounts.MOST:,}")
    if request.roots and who(request.sender):
        return no_step("resume --root")
    if request.sender and request.sender.steps:
        refused = beyond(request.given, request.budget, request.allowed_tools)
        if refused:
            return refused
    changed = LimitsChanged(**{name: getattr(request, name) for name in LimitsChanged.__struct_fields__})
    after = copy(run)
    evolve(after, changed)
    stop = None if run.stop or run.final_status else reached(after)
    return [changed, stop] if stop else [changed]


def _bad_limit(request: Request) -> str:
    for name in limits.LIMIT_NAMES:
        value = getattr(request, name)
        if value is not None and not 0 <= value <= amounts.MOST:
            return name
    return ""


def _answer(run: Run, placed: PlacedWorkflow, request: Request, now: float) -> list[Event] | Refusal:
    open_ones = asking(run)
    if request.agent:
        open_ones = [agent for agent in open_ones if agent.id == request.agent]
    if not open_ones:
        what = f"{request.agent} is not waiting for an answer" if request.agent else "no agent is waiting for an answer"
        return Refusal("not_asking", what, _among("these are", request.agent, [agent.id for agent in asking(run)]))
    if len(open_ones) > 1:
        names = ", ".join(agent.id for agent in open_ones)
        return Refusal("several_asking", f"several agents are waiting for an answer: {names}")
    agent = open_ones[0]
    if request.question not in (0, agent.asks):
        what = f"{agent.id} asks question {agent.asks} now, not {request.question}"
        return Refusal("other_question", what)
    if agent.visit.is_overdue(now):
        # The driver that would have gone on without an answer is gone; the next one does.
        what = f"the question of {agent.id} could be answered until {_second(agent.visit.wake_at)}"
        return Refusal("overdue", what)
    refused = _lacks_person(run, agent, request)
    if refused:
        return refused
    if not request.text.strip():
        return Refusal("no_text", "the answer is empty")
    offered = agent.visit.rest.choices if agent.visit.rest else ()
    answer = choices.pick(offered, request.text) if offered else request.text
    if answer is None:
        return Refusal("not_a_choice", f"`{cut_short(request.text)}` is not one of: {choices.offer(offered)}")
    return transitions.end_ask(run, placed, agent, answer)


def _second(at: float) -> str:
    return f"{datetime.fromtimestamp(int(at), UTC).replace(tzinfo=None).isoformat()}Z"


def _needs_person(agent: Agent) -> bool:
    rest, stuck = agent.visit.rest, agent.visit.stuck
    return (rest is not None and rest.approve == "person") or (
        stuck is not None and stuck.kind in ("approval", "review")
    )


def _lacks_person(run: Run, agent: Agent, request: Request) -> Refusal | None:
    """Why this sender may not decide for an agent that asks for the approval of a person."""
    sender = request.sender
    if not _needs_person(agent) or (sender and sender.is_person):
        return None
    if run.start.decide_by == "program" and sender and sender.may_decide:
        return None
    stuck, by = agent.visit.stuck, request.sender.agent if request.sender else ""
    how = f"and this was asked for by what {by} has started" if by else "which has to be typed on a terminal"
    if stuck and stuck.kind == "review":
        return Refusal("needs_review", f"the work of {agent.id} waits for the review of a person, {how}")
    return Refusal("needs_person", f"{agent.id} asks for the approval of a person, {how}")


def _among(what: str, name: str, names: list[str]) -> str:
    """Who could be meant instead; empty when nobody could."""
    from difflib import get_close_matches

    if not name or not names:
        return ""
    first = get_close_matches(name, names, 3)
    shown = [*first, *(one for one in names if one not in first)][:_SHOWN]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{what}: {', '.join(shown)}{more}"


def _agent(run: Run, placed: PlacedWorkflow, request: Request) -> list[Event] | Refusal:
    agent = run.agents.get(request.agent)
    if not agent:
        what = f"there is no agent {request.agent} left in {run.start.workflow_id}"
        others = _among("its agents", request.agent, [*run.agents])
        return Refusal("no_such_agent", what, handled_failure.advice_if_handled(run, request.agent) or others)
    if agent.status == RUNNING and request.kind == "pause":
        return []  # its driver ends the step first
    if agent.status == RUNNING:
        return Refusal("agent_running", f"{agent.id} is running")
    # To move it past its question, or to let it fail and then move it, would be to answer. To retry is to ask again.
    refused = None if request.kind == "retry" else _lacks_person(run, agent, request)
    if refused:
        return refused
    match request.kind:
        case "pause":
            if agent.status in (FAILED, PAUSED):
                already = "has already failed" if agent.status == FAILED else "is already paused"
                return Refusal("agent_status", f"{agent.id} {already}")
            if agent.status in (ASKING, WAITING):
                # Tried again, it would repeat the step that asked or forked.
                return Refusal("agent_status", f"{agent.id} is {agent.status}: there is nothing to pause")
            return [AgentPaused(agent=agent.id, kind=who(request.sender) or "person")]
        case "retry":
            if agent.status not in (FAILED, PAUSED):
                return Refusal("agent_status", f"{agent.id} is {agent.status}, not failed or paused")
            return [AgentRetried(agent=agent.id, fresh=request.fresh)]
        case "move":
            landing = transitions.land(placed, {}, request.state)
            if isinstance(landing, Refusal):
                return landing
            return [AgentMoved(agent=agent.id, tag="moved", state=landing.state, input=request.text)]
        case "accept" | "reject":
            return _decide_review(run, placed, agent, request)
        case "result":
            return transitions.finish(run, placed, agent, request.text)
        case _:
            if agent.status == FAILED:
                return Refusal("agent_status", f"{agent.id} has already failed")
            return transitions.give_up(run, placed, agent, "given up", request.text or _given_up(request.sender))


def _decide_review(run: Run, placed: PlacedWorkflow, agent: Agent, request: Request) -> list[Event] | Refusal:
    review = agent.visit.review
    if agent.status != PAUSED or review is None:
        return Refusal("agent_status", f"there is nothing to review of {agent.id}")
    if request.digest and request.digest != review.digest:
        return Refusal("changed", f"{agent.id} has another change to review now; look at it first")
    return gates.decided(run, placed, agent, request.text, accepted=request.kind == "accept")


def _given_up(sender: Sender | None) -> str:
    """Who gave an agent up; only what was typed on a terminal is said to be a person."""
    if sender is None or sender.is_person:
        return "given up by a person"
    return {"step": "given up by a step", "unknown": "given up by an unknown process", "": "given up by a command"}[
        who(sender)
    ]
