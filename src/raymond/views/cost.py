"""What a run has cost: turn by turn with totals, and up to each of its decisions."""

from collections.abc import Iterable

from msgspec import Struct, field
from msgspec.structs import replace

from raymond.machine.agent import RUNNING, SCRIPTED, backend_of
from raymond.machine.events import (
    AgentStarted,
    Decision,
    EvaluatorEnded,
    Event,
    JournalCut,
    RunStarted,
    StepEnded,
    StepFinished,
    StepStarted,
    is_end,
    is_entry,
)
from raymond.machine.run import Run
from raymond.machine.step_changes import unpaid
from raymond.views.times import second

WAYS = ("state", "agent", "model", "day")
LOST = "lost in a repair"
"""The state, agent and model of what a repair has lost."""


# Turn by turn


class Entry(Struct, frozen=True):
    """One turn that was paid for, or what a repair has lost."""

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
    turns: int = 1
    """0 for what a repair has lost: nobody knows how many they were."""
    label: str = ""
    """Of the agent."""
    workflow: str = ""
    folder: str = ""
    """Where the workflow was found: others may have its name."""
    asked: str = ""
    """BACKEND/MODEL that the turn was to have; turns that asked for the same had the same."""
    scripted: bool = False
    """Answered by scripted replies: what it is said to have cost nobody paid."""


class Sum(Struct):
    """The total of several entries."""

    turns: int = 0
    cost_usd: float = 0.0
    cost_is_estimated: bool = False
    failed_turns: int = 0
    failed_cost_usd: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    label: str | None = None
    """Of the agent, in sums by agent."""
    scripted_turns: int = 0
    scripted_cost_usd: float = 0.0
    """What scripted replies are said to have cost; it is in none of the other costs."""

    def add(self, entry: Entry) -> None:
        """Add `entry` to the total."""
        self.turns += entry.turns
        cost = 0.0 if entry.scripted else entry.cost
        if entry.scripted:
            self.scripted_turns += entry.turns
            self.scripted_cost_usd = round(self.scripted_cost_usd + entry.cost, 9)
        self.cost_usd = round(self.cost_usd + cost, 9)
        self.cost_is_estimated = self.cost_is_estimated or entry.estimated
        self.failed_turns += entry.failed
        self.failed_cost_usd = round(self.failed_cost_usd + (cost if entry.failed else 0.0), 9)
        self.tokens_in += entry.tokens_in
        self.tokens_out += entry.tokens_out


def entries(run: str, decisions: Iterable[Decision]) -> list[Entry]:
    """Every turn of a backend, in the order in which they ended; scripts cost nothing."""
    states: dict[str, str] = {}
    labels: dict[str, str] = {}
    start: RunStarted | None = None
    paid: dict[int, float] = {}
    started: dict[str, StepStarted] = {}
    found: list[Entry] = []
    for decision in decisions:
        for event in decision.events:
            if is_entry(event):
                states[event.agent] = event.state
                if type(event) is AgentStarted and event.label:
                    labels[event.agent] = event.label
            elif type(event) is RunStarted:
                start = event
            elif type(event) is StepStarted:
                started[event.agent] = event
            elif is_end(event) and event.agent in started:
                turn = started.pop(event.agent)
                if turn.backend:
                    cost = unpaid(paid, event)
                    entry = _entry(run, decision.time, states.get(event.agent, ""), turn, event, cost)
                    found.append(replace(entry, label=labels.get(event.agent, "")))
                paid.pop(event.step, None)
            elif type(event) is JournalCut:
                paid |= event.paid
                found += _lost_entries(run, decision.time, event.cost, event.scripted)
    reported = {entry.asked: entry.model for entry in found if entry.model}
    named = [replace(one, model=one.model or reported.get(one.asked) or _requested_model(one.asked)) for one in found]
    return [replace(one, workflow=start.name, folder=start.scope_dir) for one in named] if start else named


def _requested_model(asked: str) -> str:
    """The model that was asked for, when the program never reported which one answered."""
    backend, _, model = asked.partition("/")
    return model or f"{backend}'s own"


def _lost_entries(run: str, time: float, cost: float, scripted: float) -> list[Entry]:
    lost = Entry(
        run, LOST, LOST, LOST, _day(time), cost, estimated=False, tokens_in=0, tokens_out=0, failed=False, turns=0
    )
    real = round(cost - scripted, 9)
    parts = (replace(lost, cost=real), replace(lost, cost=scripted, scripted=True))
    return [part for part in parts if part.cost > 0]


def _day(time: float) -> str:
    return second(int(time))[:10]


def _entry(run: str, time: float, state: str, turn: StepStarted, event: StepEnded, cost: float) -> Entry:
    return Entry(
        run=run,
        state=state,
        agent=event.agent,
        model=event.model,
        asked=f"{turn.backend}/{turn.model}",
        day=_day(time),
        cost=cost,
        estimated=event.estimated,
        tokens_in=event.tokens_in,
        tokens_out=event.tokens_out,
        failed=not _is_used(event),
        scripted=turn.backend in SCRIPTED,
    )


def _is_used(event: StepEnded) -> bool:
    """Whether something followed from a turn: from its reply, or from the word of a judge."""
    return isinstance(event, StepFinished) or (isinstance(event, EvaluatorEnded) and event.decided)


def sums(found: Iterable[Entry], by: str, *, several: bool = False) -> dict[str, Sum]:
    """The totals by one of WAYS, or by run; the most expensive first.

    Of `several` runs, a state is named with its workflow and an agent with its run: each has a START and a main. Where
    workflows of several folders have one name, the folder is named too.
    """
    made: dict[str, Sum] = {}
    found = list(found)
    folders: dict[str, set[str]] = {}
    for entry in found:
        folders.setdefault(entry.workflow, set()).add(entry.folder)
    for entry in found:
        name = getattr(entry, by)
        if several and name != LOST:
            where = f" ({entry.folder})" if len(folders[entry.workflow]) > 1 else ""
            name = {"state": f"{entry.workflow}/{name}{where}", "agent": f"{entry.run}/{name}"}.get(by, name)
        one = made.setdefault(name, Sum())
        one.add(entry)
        if by == "agent":
            one.label = entry.label or None
    return dict(sorted(made.items(), key=lambda pair: (-pair[1].cost_usd, -pair[1].scripted_cost_usd, pair[0])))


def total(found: Iterable[Entry]) -> Sum:
    """The total of all entries."""
    whole = Sum()
    for entry in found:
        whole.add(entry)
    return whole


# Up to each decision


class Tally(Struct):
    """The cost of a run so far, as its events tell it one by one."""

    real: float = 0.0
    scripted: float = 0.0
    """What scripted replies are said to have cost; nobody has paid that."""
    estimated: bool = False
    backends: dict[str, str] = field(default_factory=dict)
    """What runs the last step of each agent; nothing for a script."""
    paid: dict[int, float] = field(default_factory=dict)
    """Steps whose end was lost, and what of their cost is counted already."""
    start: RunStarted | None = None

    @property
    def cost(self) -> float:
        """Everything that a budget counts."""
        return self.real + self.scripted

    def add(self, event: Event) -> None:
        """Count what happened next."""
        if type(event) is StepStarted:
            self.backends[event.agent] = event.backend
        elif is_end(event):
            if event.cost or event.estimated or self.paid:
                self._end(event)
        elif type(event) is RunStarted:
            self.start = event
        elif type(event) is JournalCut:
            self.scripted += event.scripted
            self.real += event.cost - event.scripted
            self.paid.update(event.paid)

    def _end(self, event: StepEnded) -> None:
        cost = unpaid(self.paid, event)
        self.paid.pop(event.step, None)
        self.estimated = self.estimated or event.estimated
        if self.backends.get(event.agent, "") in SCRIPTED:
            self.scripted += cost
        else:
            self.real += cost


def tally_of(run: Run) -> Tally:
    """What a run has cost up to now."""
    running = {agent.id: backend_of(agent.pool) for agent in run.agents.values() if agent.status == RUNNING}
    return Tally(run.billed, run.scripted, run.estimated, running, dict(run.paid), run.begun)
