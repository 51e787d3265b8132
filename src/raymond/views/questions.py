"""The open questions of a run, as values."""

from msgspec import Struct

from raymond.machine.agent import ASKING, Agent
from raymond.machine.asked_file import AskedFile
from raymond.machine.run import Run


class Question(Struct, frozen=True, kw_only=True):
    """A question that waits for an answer."""

    workflow_id: str
    agent: str
    label: str = ""
    number: int
    text: str
    state: str
    """The state that asks."""
    asked_at: float
    deadline: float = 0.0
    """Until when it can be answered; 0 for ever."""
    approve: str = ""
    choices: tuple[str, ...] = ()
    """The answers that are taken; any when there are none."""
    files: tuple[AskedFile, ...] = ()
    """Shown with it, as they were when it was asked."""
    cwd: str = ""
    """The directory that the files are in."""

    def is_called(self, word: str) -> bool:
        """Whether that is the name or the label of the agent."""
        return bool(word) and word in (self.agent, self.label)


def questions(run: Run) -> list[Question]:
    """The open questions, the oldest first; a run that was cancelled has none."""
    if run.is_over:
        return []
    id, cwd = run.start.workflow_id, run.start.cwd
    found = [question_of(id, agent, cwd) for agent in run.agents.values() if agent.status == ASKING]
    return sorted(found, key=lambda one: one.number)


def question_of(id: str, agent: Agent, cwd: str = "") -> Question:
    """What an agent of run `id` asks; `cwd` is the directory of the run."""
    rest = agent.visit.rest
    return Question(
        workflow_id=id,
        agent=agent.id,
        label=agent.label,
        number=agent.asks,
        text=agent.question,
        state=agent.state,
        asked_at=(rest.asked_at if rest else 0.0) or agent.visit.since,
        deadline=agent.visit.wake_at,
        approve=rest.approve if rest else "",
        choices=rest.choices if rest else (),
        files=rest.files if rest else (),
        cwd=agent.cwd or cwd,
    )
