"""What happened in a run: its agents, and one step in full."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from raymond.errors import UsageError
from raymond.machine.events import Decision, StepEnded
from raymond.machine.run import Run
from raymond.store import transcripts
from raymond.store.project import Project


class StepRecord(Struct, frozen=True):
    """One turn of a step: how it ended, and its lines in the transcript."""

    ended: StepEnded
    transcript: list[dict[str, object]]


def check_agent(run: Run, decisions: Iterable[Decision], agent: str) -> None:
    """Refuse an agent that these decisions do not mention."""
    if any(getattr(event, "agent", "") == agent for decision in decisions for event in decision.events):
        return
    known = ", ".join(list(run.agents) or list(run.outcomes))
    raise UsageError(f"there is no agent `{agent}` in {run.start.workflow_id}", hint=f"among them: {known[:200]}")


def step(project: Project, id: str, decisions: Sequence[Decision], number: int) -> list[StepRecord]:
    """Every turn of step `number`, in order."""
    events = [event for decision in decisions for event in decision.events]
    ends = [event for event in events if isinstance(event, StepEnded) and event.step == number]
    if not ends:
        most = max((getattr(event, "step", 0) for event in events), default=0)
        raise UsageError(f"step {number} of {id} has not ended", hint=f"the last one is step {most}")
    folder = project.run(id).transcripts
    return [StepRecord(end, transcripts.read(folder, end.agent, end.offset) if end.offset >= 0 else []) for end in ends]
