"""What a run had cost by each of its decisions."""

from msgspec import Struct, field

from raymond.machine.agent import RUNNING, SCRIPTED, backend_of
from raymond.machine.events import Event, JournalCut, RunStarted, StepEnded, StepStarted, is_end
from raymond.machine.run import Run
from raymond.machine.step_changes import unpaid


class Tally(Struct):
    """The cost of a run so far, as its events tell it one by one."""

    real: float = 0.0
    scripted: float = 0.0
    """What scripted replies are said to have cost; nobody has paid that."""
    estimated: bool = False
    backends: dict[str, str] = field(default_factory=dict)
    """What runs the last step of each agent; nothing for a script."""
    paid: dict[int, float] = field(default_factory=dict)
    """Steps whose end was lost, and what of their cost is counted already."""
    start: RunStarted | None = None

    @property
    def cost(self) -> float:
        """Everything that a budget counts."""
        return self.real + self.scripted

    def add(self, event: Event) -> None:
        """Count what happened next."""
        if type(event) is StepStarted:
            self.backends[event.agent] = event.backend
        elif is_end(event):
            if event.cost or event.estimated or self.paid:
                self._end(event)
        elif type(event) is RunStarted:
            self.start = event
        elif type(event) is JournalCut:
            self.scripted += event.scripted
            self.real += event.cost - event.scripted
            self.paid.update(event.paid)

    def _end(self, event: StepEnded) -> None:
        cost = unpaid(self.paid, event)
        self.paid.pop(event.step, None)
        self.estimated = self.estimated or event.estimated
        if self.backends.get(event.agent, "") in SCRIPTED:
            self.scripted += cost
        else:
            self.real += cost


def of_run(run: Run) -> Tally:
    """What a run has cost up to now."""
    running = {agent.id: backend_of(agent.pool) for agent in run.agents.values() if agent.status == RUNNING}
    return Tally(run.billed, run.scripted, run.estimated, running, dict(run.paid), run.begun)
