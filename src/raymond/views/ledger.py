"""What the turns of a run cost, entry by entry, and the totals."""

from collections.abc import Iterable

from msgspec import Struct

from raymond.machine.events import (
    AgentCalled,
    AgentMoved,
    AgentReturned,
    AgentStarted,
    AskEnded,
    Decision,
    StepEnded,
    StepFinished,
    StepStarted,
    WaitEnded,
)
from raymond.views.times import second

WAYS = ("state", "agent", "model", "day")
_ENTERS = (AgentStarted, AgentMoved, AgentCalled, AgentReturned, WaitEnded, AskEnded)


class Entry(Struct, frozen=True):
    """One turn that was paid for."""

    run: str
    state: str
    agent: str
    model: str
    day: str
    cost: float
    estimated: bool
    tokens_in: int
    tokens_out: int
    failed: bool
    """Its reply was rejected, or it failed or was cut off: money spent for nothing."""


class Sum(Struct):
    """The total of several entries."""

    turns: int = 0
    cost_usd: float = 0.0
    cost_is_estimated: bool = False
    failed_turns: int = 0
    failed_cost_usd: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0

    def add(self, entry: Entry) -> None:
        """Add `entry` to the total."""
        self.turns += 1
        self.cost_usd += entry.cost
        self.cost_is_estimated = self.cost_is_estimated or entry.estimated
        self.failed_turns += entry.failed
        self.failed_cost_usd += entry.cost if entry.failed else 0.0
        self.tokens_in += entry.tokens_in
        self.tokens_out += entry.tokens_out


def entries(run: str, decisions: Iterable[Decision]) -> list[Entry]:
    """Every turn of a backend, in the order in which they ended; scripts cost nothing."""
    states: dict[str, str] = {}
    started: dict[str, StepStarted] = {}
    found: list[Entry] = []
    for decision in decisions:
        for event in decision.events:
            if isinstance(event, _ENTERS):
                states[event.agent] = event.state
            elif isinstance(event, StepStarted):
                started[event.agent] = event
            elif isinstance(event, StepEnded) and event.agent in started:
                turn = started.pop(event.agent)
                if turn.backend:
                    found.append(_entry(run, decision.time, states.get(event.agent, ""), turn, event))
    return found


def _entry(run: str, time: float, state: str, turn: StepStarted, event: StepEnded) -> Entry:
    return Entry(
        run=run,
        state=state,
        agent=event.agent,
        model=turn.model or f"{turn.backend}'s own",
        day=second(int(time))[:10],
        cost=event.cost,
        estimated=event.estimated,
        tokens_in=event.tokens_in,
        tokens_out=event.tokens_out,
        failed=not isinstance(event, StepFinished),
    )


def sums(found: Iterable[Entry], by: str) -> dict[str, Sum]:
    """The totals by one of WAYS, or by run; the most expensive first."""
    made: dict[str, Sum] = {}
    for entry in found:
        made.setdefault(getattr(entry, by), Sum()).add(entry)
    return dict(sorted(made.items(), key=lambda pair: (-pair[1].cost_usd, pair[0])))


def total(found: Iterable[Entry]) -> Sum:
    """The total of all entries."""
    whole = Sum()
    for entry in found:
        whole.add(entry)
    return whole
