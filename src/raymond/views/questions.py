"""The open questions of a run, as values."""

from msgspec import Struct

from raymond.machine.agent import ASKING, Agent
from raymond.machine.run import Run


class Question(Struct, frozen=True, kw_only=True):
    """A question that waits for an answer."""

    workflow_id: str
    agent: str
    number: int
    text: str
    state: str
    """The state that asks."""
    asked_at: float
    deadline: float = 0.0
    """Until when it can be answered; 0 for ever."""
    approve: str = ""


def questions(run: Run) -> list[Question]:
    """The open questions, the oldest first; a run that was cancelled has none."""
    if run.is_over:
        return []
    found = [_question(run, agent) for agent in run.agents.values() if agent.status == ASKING]
    return sorted(found, key=lambda one: one.number)


def _question(run: Run, agent: Agent) -> Question:
    rest = agent.visit.rest
    return Question(
        workflow_id=run.start.workflow_id,
        agent=agent.id,
        number=agent.asks,
        text=agent.question,
        state=agent.state,
        asked_at=(rest.asked_at if rest else 0.0) or agent.visit.since,
        deadline=agent.visit.wake_at,
        approve=rest.approve if rest else "",
    )
