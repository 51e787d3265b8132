"""What each agent of a run does, in a table: a line for each, parents before the agents that they forked."""

from collections.abc import Sequence

from raymond import durations
from raymond.faces import awaited, clock, table, words
from raymond.faces.table import Column
from raymond.machine.agent import ASKING, FAILED, PAUSED, READY, RUNNING, SLEEPING, WAITING, Agent
from raymond.machine.run import CANCELLED, Run
from raymond.views.checking import is_checking, is_judged

_INDENT = "  "
_COLUMNS = (
    Column(least=16),
    Column(least=10),
    Column(),
    Column(right=True, rank=1),
    Column(least=12, rank=2, prose=True),
)
_URGENT = (FAILED, ASKING, PAUSED, RUNNING, READY, SLEEPING, WAITING)


def chosen(run: Run, most: int) -> list[Agent]:
    """The agents to show, at most `most`: those that matter most, in the order in which they were started."""
    agents = list(run.agents.values())
    if len(agents) <= most:
        return agents
    kept = {agent.id for agent in sorted(agents, key=lambda agent: _URGENT.index(agent.status))[:most]}
    return [agent for agent in agents if agent.id in kept]


def lines(run: Run, agents: Sequence[Agent], *, driven: bool, now: float, width: int = 0) -> list[str]:
    """A line for each of `agents`: where it is, what it does, since when, and what it waits for."""
    rows = [_cells(run, agent, driven, now) for agent in agents]
    room = max(1, width - len(_INDENT)) if width else 0
    return [f"{_INDENT}{line}" for line in table.lines(_COLUMNS, rows, room)]


def _cells(run: Run, agent: Agent, driven: bool, now: float) -> tuple[str, ...]:
    status = agent.status if driven or agent.status != RUNNING else "interrupted"
    if run.final_status == CANCELLED:
        return words.who(agent), agent.state, f"was {status}", "", ""
    # What stands still is not counted: only a question waits, whoever drives the run.
    counts = agent.status == ASKING or (driven and agent.status not in (FAILED, PAUSED))
    since = durations.brief(max(0.0, now - awaited.since(agent))) if counts else ""
    return words.who(agent), agent.state, status, since, _detail(run, agent)


def _detail(run: Run, agent: Agent) -> str:
    until = f"until {clock.instant(agent.visit.wake_at)}" if agent.visit.wake_at else ""
    again = f", then attempt {agent.visit.attempt + 1}" if until and agent.visit.failures else ""
    if agent.status == WAITING:
        return " ".join(filter(None, (f"for {words.many(agent.alive, 'agent')}", until)))
    if agent.status == READY and not until:
        return awaited.place(run, agent, clock.instant)
    if is_checking(agent) or is_judged(agent):
        return "its gate" if is_checking(agent) else "its evaluator"
    return f"{until}{again}"
