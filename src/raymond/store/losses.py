"""What a repair finds in the lines it cuts off a journal."""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from raymond import amounts
from raymond.machine.agent import READY, RUNNING, SCRIPTED
from raymond.machine.events import (
    Decision,
    Event,
    JournalCut,
    LimitsChanged,
    RunResumed,
    RunStopped,
    StepEnded,
    StepFinished,
    StepStarted,
    is_entry,
)
from raymond.machine.limits import Limits, limits_of
from raymond.machine.run import Run, pool_of
from raymond.machine.step_changes import unpaid
from raymond.store.transcripts import lines_from


class LostStep(Struct, frozen=True):
    """A step whose end, or all of which, was lost."""

    number: int
    agent: str
    state: str = ""
    """Empty when nothing tells."""
    is_kept: bool = False
    """It began before the cut: its reply may still be found."""
    finished: bool = False


def steps(run: Run, lost: Iterable[Decision], transcripts: str) -> list[LostStep]:
    """The steps of `run` that were running at the cut, and those that began after it."""
    running = [agent for agent in run.agents.values() if agent.status == RUNNING]
    found = {agent.step: LostStep(agent.step, agent.id, agent.state, is_kept=True) for agent in running}
    states = {agent.id: agent.state for agent in run.agents.values() if agent.status == READY}
    for event in _events(lost):
        if is_entry(event):
            states[event.agent] = event.state
        elif isinstance(event, StepStarted):
            found.setdefault(event.step, LostStep(event.step, event.agent, states.get(event.agent, "")))
        elif isinstance(event, StepEnded):
            begun = found.get(event.step) or LostStep(event.step, event.agent, states.get(event.agent, ""))
            state = begun.state if begun.is_kept else _recorded(transcripts, event) or begun.state
            found[event.step] = replace(begun, state=state, finished=isinstance(event, StepFinished))
    return sorted(found.values(), key=lambda step: step.number)


def _recorded(transcripts: str, event: StepEnded) -> str:
    """The state of a step, as the transcript of its agent has it; empty when it has none."""
    if event.offset < 0 or "/" in event.agent:
        return ""  # nobody has folded the event: it may name any file
    try:
        record = msgspec.json.decode(next(lines_from(transcripts, event.agent, event.offset)), type=_Record)
    except (StopIteration, OSError, msgspec.DecodeError, RecursionError):
        return ""
    return record.state if record.step == event.step else ""


class _Record(Struct):
    step: int
    state: str


class Bill(Struct):
    """What lost steps have cost."""

    cost: float
    """All that was not counted before."""
    scripted: float
    """What of it scripted replies are said to have cost."""
    paid: dict[int, float]
    """What the steps have cost that were running at the cut, and that end a second time."""


def bill(run: Run, lost: Iterable[Decision]) -> Bill:
    """What the steps have cost that ended after the cut of `run`, or that earlier repairs had lost.

    What no turn can have cost is not believed.
    """
    cost, scripted, paid, again = 0.0, 0.0, dict(run.paid), dict(run.paid)
    default = run.begun.backend if run.begun else ""
    backends = {agent.id: pool_of(run, agent.state) for agent in run.agents.values() if agent.state.endswith(".md")}
    running = {agent.step for agent in run.agents.values() if agent.status == RUNNING}
    for event in _events(lost):
        if isinstance(event, JournalCut):
            if amounts.is_cost(event.cost):
                cost += event.cost
                scripted += min(max(event.scripted, 0.0), event.cost)
            known = {step: amount for step, amount in event.paid.items() if amounts.is_cost(amount)}
            paid |= known
            again |= {step: amount for step, amount in known.items() if step in running}
        elif isinstance(event, StepEnded) and amounts.is_cost(event.cost):
            cost += unpaid(paid, event)
            scripted += unpaid(paid, event) if (backends.get(event.agent) or default) in SCRIPTED else 0.0
            paid.pop(event.step, None)
            if event.step in running:
                again[event.step] = max(event.cost, again.get(event.step, 0.0))
        if isinstance(event, StepStarted):
            backends[event.agent] = event.backend
        if isinstance(event, StepEnded | StepStarted):
            running.discard(event.step)  # the next one that ends is another turn
    cost, scripted = round(min(cost, amounts.MOST), 6), round(min(scripted, amounts.MOST), 6)
    return Bill(cost, min(scripted, cost), {step: amount for step, amount in again.items() if amount})


def standing(lost: Iterable[Decision]) -> list[LimitsChanged | RunStopped]:
    """What people decided and nothing has taken back: limits and rights, and that the run stops."""
    changed: list[LimitsChanged] = []
    stop: RunStopped | None = None
    for event in _events(lost):
        if isinstance(event, LimitsChanged):
            changed.append(event)
        elif isinstance(event, RunStopped | RunResumed):
            stop = event if isinstance(event, RunStopped) else None
    return [*([_together(changed)] if changed else []), *([stop] if stop else [])]


def _together(changed: list[LimitsChanged]) -> LimitsChanged:
    """One change instead of several."""
    limits = Limits()
    for one in changed:
        limits = limits_of(one).over(limits)
    return LimitsChanged(
        **asdict(limits),
        allowed_tools=list(dict.fromkeys(tool for one in changed for tool in one.allowed_tools)),
        roots=list(dict.fromkeys(root for one in changed for root in one.roots)),
    )


def _events(lost: Iterable[Decision]) -> Iterator[Event]:
    return (event for decision in lost for event in decision.events)
