"""What happened in a run: its agents, one step in full, and since when."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from datetime import time as clock

from msgspec import Struct

from raymond import durations
from raymond.control import agents
from raymond.errors import UsageError
from raymond.machine.events import Decision, StepEnded, StepStarted
from raymond.store.project import Project
from raymond.store.records import Records
from raymond.views import agent_names

_DAY = 86400.0
_NAMED = 20
"""Steps that are named to somebody who named none of them."""


class StepRecord(Struct, frozen=True):
    """One turn of a step: how it ended, and its lines in the transcript."""

    ended: StepEnded
    backend: str
    """What answered; empty for a script."""
    transcript: list[dict[str, object]]


def agent_of(id: str, decisions: Iterable[Decision], word: str) -> str:
    """The name of the agent of run `id` that a word means; refused when these decisions mention none."""
    names = agent_names.of_events(event for decision in decisions for event in decision.events)
    found = agents.named(names, word)
    if not found:
        raise agents.unknown(id, names, word)
    return found


def check_step(id: str, decisions: Iterable[Decision], number: int, agent: str = "") -> None:
    """Refuse a step that there is not, that has not ended, or that is another agent's than `agent`."""
    whose: dict[int, str] = {}
    running: set[int] = set()
    for decision in decisions:
        for event in decision.events:
            if isinstance(event, StepStarted):
                whose[event.step] = event.agent
                running.add(event.step)
            elif isinstance(event, StepEnded):
                running.discard(event.step)
    if number not in whose:
        last = f"the last one is step {max(whose)}" if whose else "no step has started yet"
        raise UsageError(f"there is no step {number} in {id}", hint=last)
    if agent and whose[number] != agent:
        its = [str(step) for step, name in whose.items() if name == agent]
        listed = f"steps of {agent}: {', '.join(its[-_NAMED:])}" if its else f"{agent} has had no step yet"
        raise UsageError(f"step {number} of {id} is a step of {whose[number]}, not of {agent}", hint=listed)
    if number in running:
        raise UsageError(
            f"step {number} of {id} has not ended", hint=f"raymond attach {id} shows what {whose[number]} is doing"
        )


def step(project: Project, id: str, decisions: Sequence[Decision], number: int, agent: str = "") -> list[StepRecord]:
    """Every turn of step `number`, in order."""
    check_step(id, decisions, number, agent)
    events = [event for decision in decisions for event in decision.events]
    ends = [event for event in events if isinstance(event, StepEnded) and event.step == number]
    backend = next((one.backend for one in events if isinstance(one, StepStarted) and one.step == number), "")
    records = Records(project.run(id).transcripts)
    return [StepRecord(end, backend, records.of(end.agent, end.offset)) for end in ends]


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
