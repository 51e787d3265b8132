"""What happened in runs: the steps of one in full, how far its gates are, and what the turns cost."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from datetime import time as clock
from typing import TYPE_CHECKING

from msgspec import Struct

from raymond import durations
from raymond.control import naming, runs
from raymond.errors import Error, JournalError, UsageError
from raymond.machine.agent import Agent
from raymond.machine.events import Decision, Event, StepEnded, StepStarted, is_entry
from raymond.machine.run import Run
from raymond.store import journal
from raymond.store.project import Project
from raymond.store.transcripts import TranscriptReader
from raymond.views import cost, questions
from raymond.views.cost import Entry, Sum
from raymond.views.status import is_checking, why_red

if TYPE_CHECKING:
    from raymond.language.policy import Policy

_DAY = 86400.0
_NAMED = 20
"""Steps that are named to somebody who named none of them."""


class StepRecord(Struct, frozen=True):
    """One turn of a step: how it began and ended, and its lines in the transcript."""

    begun: StepStarted
    ended: StepEnded | None
    """None when its driver died before that, and nobody has driven the run since."""
    transcript: list[dict[str, object]]
    state: str


def each(project: Project, id: str) -> Iterator[Decision]:
    """Every decision of run `id`, one by one; if one is damaged, those before it come first."""
    return journal.each(project.run(id))


def agent_of(id: str, decisions: Iterable[Decision], word: str) -> str:
    """The name of the agent of run `id` that a word means; refused when these decisions mention none."""
    names = questions.agent_names_in(_events(decisions))
    found = naming.agent_named(names, word)
    if not found:
        raise naming.unknown_agent(id, names, word)
    return found


def check_step(id: str, decisions: Iterable[Decision], number: int, agent: str = "") -> None:
    """Refuse a step that there is not, or that is another agent's than `agent`."""
    whose = {event.step: event.agent for event in _events(decisions) if isinstance(event, StepStarted)}
    if number not in whose:
        last = f"the last one is step {max(whose)}" if whose else "no step has started yet"
        raise UsageError(f"there is no step {number} in {id}", hint=last)
    if agent and whose[number] != agent:
        its = [str(step) for step, name in whose.items() if name == agent]
        listed = f"steps of {agent}: {', '.join(its[-_NAMED:])}" if its else f"{agent} has had no step yet"
        raise UsageError(f"step {number} of {id} is a step of {whose[number]}, not of {agent}", hint=listed)


def step(project: Project, id: str, decisions: Sequence[Decision], number: int, agent: str = "") -> list[StepRecord]:
    """Every turn of step `number`, in order; refused while it runs."""
    check_step(id, decisions, number, agent)
    folder = project.run(id)
    records, turns = TranscriptReader(folder.transcripts), list[StepRecord]()
    begun: StepStarted | None = None
    states: dict[str, str] = {}
    for event in _events(decisions):
        if is_entry(event):
            states[event.agent] = event.state
        elif isinstance(event, StepStarted) and event.step == number:
            begun = event
        elif isinstance(event, StepEnded) and event.step == number and begun:
            turns.append(StepRecord(begun, event, records.ended(event), states.get(event.agent, "?")))
            begun = None
    if begun and runs.is_driven(folder):
        hint = f"raymond attach {id} shows what {begun.agent} is doing"
        raise UsageError(f"step {number} of {id} has not ended", hint=hint)
    if begun:
        lines = records.so_far(begun.agent, number, begun.turn)
        turns.append(StepRecord(begun, None, lines, states.get(begun.agent, "?")))
    return turns


def _events(decisions: Iterable[Decision]) -> Iterator[Event]:
    for decision in decisions:
        yield from decision.events


def moment(text: str, now: float) -> float:
    """The time that `text` means: `10m` ago, 14:30 by the person's clock, or a date with or without a time."""
    ago = durations.parse(text)
    if ago is not None:
        return now - ago
    try:
        if ":" in text and "-" not in text:
            today = datetime.fromtimestamp(now, UTC).astimezone().date()
            at = datetime.combine(today, clock.fromisoformat(text)).timestamp()
            return at if at <= now else at - _DAY
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"`{text}` is not a time",
            hint="write how long ago (10m, 2h, 1d), a time of day (14:30) or a date (2026-01-15, 2026-01-15T14:30)",
        ) from None


# --- how far a gate is


class GateProgress(Struct, frozen=True):
    """The gate of an agent's visit."""

    command: str = ""
    """What runs now; empty when none does, or nobody can tell."""
    tries: int = 0
    """How often the agent is told that it is red, at most."""


def gate_progress(project: Project, run: Run) -> dict[str, GateProgress]:
    """By agent, for those whose gate runs or was red; the workflow is read only if there is one."""
    agents = [agent for agent in run.agents.values() if is_checking(agent) or why_red(agent)]
    if not agents:
        return {}
    # Hardly any look at a run needs the workflow.
    from raymond.machine import placed_workflow
    from raymond.store import loader, workflow_snapshot

    start = run.start
    try:
        files = workflow_snapshot.read(project.run(start.workflow_id), start.source)
        states = loader.from_files(files, name=start.name, entry=start.entry, overrides=start.overrides).states
    except Error:
        return {}
    records = TranscriptReader(project.run(start.workflow_id).transcripts)
    known = [agent for agent in agents if agent.state in states]
    return {
        agent.id: _progress(placed_workflow.rules_of_state(run, states[agent.state], agent), agent, records)
        for agent in known
    }


def _progress(policy: "Policy", agent: Agent, records: TranscriptReader) -> GateProgress:
    from raymond.machine import gates

    tries = gates.TRIES if policy.gate_tries is None else policy.gate_tries
    if not is_checking(agent):
        return GateProgress(tries=tries)
    printed = "\n" + "".join(str(line.get("out", "")) for line in records.so_far(agent.id, agent.step))
    if not policy.gate:
        return GateProgress(tries=tries)
    begun = {check.run: printed.rfind(f"\n$ {check.run}\n") for check in policy.gate}
    last = max(begun, key=lambda command: begun[command])
    return GateProgress(last if begun[last] >= 0 or len(begun) == 1 else "", tries)


# --- what turns cost


class Costs(Struct):
    """Sums by state, agent, model, day or run, the most expensive first."""

    by: str
    sums: dict[str, Sum]
    total: Sum


class Books(Struct):
    """Every paid turn of some runs, and the runs whose journals cannot be read."""

    entries: list[Entry]
    unreadable: dict[str, JournalError]
    several: bool = False
    """Whether they are of more than one run."""


def books_of_run(project: Project, id: str) -> Books:
    """The turns of one run."""
    return Books(cost.entries(id, journal.each(project.run(id))), {})


def books_of_projects(projects: Iterable[Project]) -> Books:
    """The turns of all runs of some projects; of two runs with one id, the second also has the name of its project."""
    books = Books([], {}, several=True)
    seen: set[str] = set()
    for project in projects:
        for id in project.ids():
            name = f"{id} ({project.tree})" if id in seen else id
            seen.add(id)
            try:
                books.entries += cost.entries(name, journal.each(project.run(id)))
            except JournalError as error:
                books.unreadable[name] = error.with_traceback(None)  # which would keep the journal in memory
    return books


def costs(books: Books, by: str) -> Costs:
    """The sums of `books`, a row for each `by`."""
    return Costs(by, cost.sums(books.entries, by, several=books.several), cost.total(books.entries))
