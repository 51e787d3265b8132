"""What keeps an agent from continuing, in a few words."""

from collections.abc import Callable

from raymond.faces.plain_text import plain
from raymond.machine.agent import SCRIPTS, Agent, backend_of
from raymond.machine.budget import affordable
from raymond.machine.run import Run


def place(run: Run, agent: Agent, moment: Callable[[float], str | None]) -> str:
    """What keeps an agent that could start from starting; `moment` writes a time."""
    pool = agent.pool
    closed = run.closed.get(pool) or run.closed.get(backend_of(pool))
    if run.stop or run.final_status:
        return ""
    if closed and closed.kind != "machine":
        return f"for {plain(pool)}" + (f" until {moment(closed.until)}" if closed.until else "")
    most = run.start.max_scripts_at_once if pool == SCRIPTS else run.start.max_turns_at_once
    busy = sum(count for name, count in run.running.items() if backend_of(name) == backend_of(pool))
    if busy >= most:
        return f"for a place ({busy} of {most} running)"
    return "for money that running turns may need" if pool != SCRIPTS and affordable(run) <= 0 else ""


def since(agent: Agent) -> float:
    """Since when it does what it does: a step or a question may have had to wait after the agent entered its state."""
    rest = agent.visit.rest
    if agent.status == "running" and agent.began:
        return agent.began
    return rest.asked_at if agent.status == "asking" and rest and rest.asked_at else agent.visit.since
