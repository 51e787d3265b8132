"""Gates and evaluators in a run: whether one runs, and why the last gate did not count."""

from raymond.machine.agent import RUNNING, Agent


def is_checking(agent: Agent) -> bool:
    """Whether the gate of its state runs now."""
    return agent.status == RUNNING and agent.visit.phase == "gate"


def is_judged(agent: Agent) -> bool:
    """Whether its evaluator runs now."""
    return agent.status == RUNNING and agent.visit.phase == "evaluate"


def why_red(agent: Agent) -> str:
    """Why the last gate of its visit did not count; empty when none was red, or the visit is over."""
    visit = agent.visit
    return visit.reminder.partition("\n")[0] if visit.gate_tries and visit.reminded_for in ("gate", "review") else ""
