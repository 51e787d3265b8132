"""What the agents of a run are called: by their names, and by the labels that tell them apart."""

from collections.abc import Iterable

from msgspec import Struct

from raymond.machine.events import AgentStarted, Event
from raymond.machine.label import named
from raymond.machine.run import Run


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


def of_run(run: Run) -> AgentNames:
    """Those of a run as it is; the label of an agent that has ended counts while no other one has it."""
    living = [(agent.label, agent.id) for agent in run.agents.values()]
    ended = [(one.label, one.agent) for one in run.outcomes.values() if one.agent not in run.agents]
    labels = {**_grouped(ended), **_grouped(living)}
    return AgentNames((*run.agents, *(name for _, name in ended)), labels)


def of_events(events: Iterable[Event]) -> AgentNames:
    """Those of all agents that these events mention."""
    names: dict[str, str] = {}
    for event in events:
        name = getattr(event, "agent", "")
        if isinstance(event, AgentStarted):
            names[name] = event.label
        elif name:
            names.setdefault(name, "")
    return AgentNames(tuple(names), _grouped((label, name) for name, label in names.items()))


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for label, agent in pairs:
        if label:
            found[label] = (*found.get(label, ()), agent)
    return found
