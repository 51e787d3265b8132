"""What happened in a run: its agents, one step in full, and since when."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from datetime import time as clock

from msgspec import Struct

from raymond import durations
from raymond.control import agents, runs
from raymond.errors import UsageError
from raymond.machine.events import Decision, Event, StepEnded, StepStarted, is_entry
from raymond.store.project import Project
from raymond.store.records import Records
from raymond.views import questions

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


def agent_of(id: str, decisions: Iterable[Decision], word: str) -> str:
    """The name of the agent of run `id` that a word means; refused when these decisions mention none."""
    names = questions.agent_names_in(_events(decisions))
    found = agents.named(names, word)
    if not found:
        raise agents.unknown(id, names, word)
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
    records, turns = Records(folder.transcripts), list[StepRecord]()
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
