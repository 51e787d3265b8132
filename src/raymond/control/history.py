"""What happened in a run: its agents, and one step in full."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from raymond.errors import UsageError
from raymond.machine.events import Decision, StepEnded
from raymond.store.project import Project
from raymond.store.records import Records


class StepRecord(Struct, frozen=True):
    """One turn of a step: how it ended, and its lines in the transcript."""

    ended: StepEnded
    transcript: list[dict[str, object]]


def check_agent(id: str, decisions: Iterable[Decision], agent: str) -> None:
    """Refuse an agent that these decisions of run `id` do not mention."""
    known = dict.fromkeys(getattr(event, "agent", "") for decision in decisions for event in decision.events)
    if agent not in known:
        among = ", ".join(filter(None, known))
        raise UsageError(f"there is no agent `{agent}` in {id}", hint=f"among them: {among[:200]}")


def step(project: Project, id: str, decisions: Sequence[Decision], number: int) -> list[StepRecord]:
    """Every turn of step `number`, in order."""
    events = [event for decision in decisions for event in decision.events]
    ends = [event for event in events if isinstance(event, StepEnded) and event.step == number]
    if not ends:
        most = max((getattr(event, "step", 0) for event in events), default=0)
        raise UsageError(f"step {number} of {id} has not ended", hint=f"the last one is step {most}")
    records = Records(project.run(id).transcripts)
    return [StepRecord(end, records.of(end.agent, end.offset)) for end in ends]
