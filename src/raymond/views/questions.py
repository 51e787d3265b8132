"""The open questions of a run, as values, and what its agents are called: names, and labels that tell them apart."""

from collections.abc import Iterable

from msgspec import Struct, structs

from raymond.machine.agent import ASKING, Agent, AskedFile, named
from raymond.machine.events import AgentStarted, Event
from raymond.machine.run import Run


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


def open_questions(run: Run) -> list[Question]:
    """The open questions, the oldest first; a run that was cancelled has none."""
    if run.is_over:
        return []
    id, cwd = run.start.workflow_id, run.start.cwd
    found = [question_of(id, agent, cwd) for agent in run.agents.values() if agent.status == ASKING]
    names = agent_names(run)
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


# Names of agents


class AgentNames(Struct, frozen=True):
    """The names of the agents of a run, also of those that have ended, and whose label each label is."""

    names: tuple[str, ...]
    labels: dict[str, tuple[str, ...]]

    def of(self, word: str) -> tuple[str, ...]:
        """The agents that a word can mean: the one of that name, else all with that label.

        A label comes from the workflow: one that reads like the name of an agent must not stand for another one, and
        one that several agents have stands for nobody.
        """
        return (word,) if word in self.names else self.labels.get(word, ())

    def shown(self) -> list[str]:
        """Each name with its label."""
        label_of_agent = {agent: label for label, agents in self.labels.items() for agent in agents}
        return [named(name, label_of_agent.get(name, "")) for name in self.names]


def agent_names(run: Run) -> AgentNames:
    """Those of a run as it is; the label of an agent that has ended counts while no other one has it."""
    living = [(agent.label, agent.id) for agent in run.agents.values()]
    ended = [(one.label, one.agent) for one in run.outcomes.values() if one.agent not in run.agents]
    labels = {**_agents_by_label(ended), **_agents_by_label(living)}
    return AgentNames((*run.agents, *(name for _, name in ended)), labels)


def agent_names_in(events: Iterable[Event]) -> AgentNames:
    """Those of all agents that these events mention."""
    names: dict[str, str] = {}
    for event in events:
        name = getattr(event, "agent", "")
        if isinstance(event, AgentStarted):
            names[name] = event.label
        elif name:
            names.setdefault(name, "")
    return AgentNames(tuple(names), _agents_by_label((label, name) for name, label in names.items()))


def _agents_by_label(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for label, agent in pairs:
        if label:
            found[label] = (*found.get(label, ()), agent)
    return found
