"""The open questions of a run, as values."""

from msgspec import Struct, structs

from raymond.machine.agent import ASKING, Agent
from raymond.machine.asked_file import AskedFile
from raymond.machine.run import Run
from raymond.views import agent_names


class Question(Struct, frozen=True, kw_only=True):
    """A question that waits for an answer."""

    workflow_id: str
    agent: str
    label: str = ""
    is_labelled: bool = False
    """The label tells this agent from all others of the run, whether they ask or not."""
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

    def is_overdue(self, now: float) -> bool:
        """Whether the time in which it can be answered is over."""
        return 0.0 < self.deadline <= now

    def is_called(self, word: str) -> bool:
        """Whether that is the name of the agent, or a label that can mean no other."""
        return bool(word) and (word == self.agent or (self.is_labelled and word == self.label))


def questions(run: Run) -> list[Question]:
    """The open questions, the oldest first; a run that was cancelled has none."""
    if run.is_over:
        return []
    id, cwd = run.start.workflow_id, run.start.cwd
    found = [question_of(id, agent, cwd) for agent in run.agents.values() if agent.status == ASKING]
    names = agent_names.of_run(run)
    found = [structs.replace(one, is_labelled=names.of(one.label) == (one.agent,)) for one in found]
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
        cwd=(rest.files[0].folder if rest and rest.files else "") or agent.cwd or cwd,
    )
