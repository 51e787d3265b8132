"""The command to run next: one that makes progress, and does not repeat a failure for money."""

import math
import shlex

from raymond import durations
from raymond.machine.agent import Agent
from raymond.machine.run import Run
from raymond.views.status import failed_agents, run_status

_TO_BE_CHANGED = ("unreadable", "visits", "cap", "refusal", "context")
"""Failures that come again, and cost again, unless the workflow changes."""


def next_command(run: Run, now: float = 0.0) -> str:
    """The command to run next; with `now`, a question whose time is over is not to be answered."""
    id, status = run.start.workflow_id, run_status(run)
    if run.is_over:
        return f"raymond logs {id}"
    asking = [agent for agent in run.agents.values() if agent.status == "asking"]
    if status == "waiting" and not all(agent.visit.is_overdue(now) for agent in asking):
        return f"raymond answer {id}"
    paused = any(agent.status == "paused" for agent in run.agents.values())
    if status == "paused" and paused and run.denied:
        flags = " ".join(f"--allow-tool {shlex.quote(tool)}" for tool in run.denied if tool not in run.rights.allowed)
        return f"raymond resume {id} {flags}".rstrip()
    if run.stop and run.stop.kind == "limit":
        return f"raymond resume {id} {_more(run)}".rstrip()
    return _after_failure(id, failed_agents(run))


def other_commands(run: Run) -> list[str]:
    """What else makes progress."""
    failed = [agent for agent in failed_agents(run) if _kind(agent) == "script"]
    if run.is_over or run.stop or not failed or (len(failed) == 1 and failed[0].visit.detour):
        return []
    return [f"change the workflow, then raymond resume {run.start.workflow_id} --latest"]


def _after_failure(id: str, failed: list[Agent]) -> str:
    kinds = [_kind(agent) for agent in failed]
    if any(kind in ("asked", "approval") for kind in kinds):
        return f"raymond resume {id} --on-ask wait"
    if "session" in kinds:
        return f"raymond resume {id} --fresh"
    for agent in failed:
        if _kind(agent) in _TO_BE_CHANGED:
            return f"change {agent.state}, then raymond resume {id} --latest"
    if kinds == ["script"]:
        if failed[0].visit.detour:
            return _back(id, failed[0].id, *failed[0].visit.detour)
        return f"raymond resume {id} --agent {failed[0].id} --retry"
    return f"raymond resume {id}"


def _back(id: str, agent: str, source: str, used_up: str) -> str:
    """Out of the state that a loop without an end leads to: it fails on purpose, and would fail again."""
    return f"raise max_visits in {used_up}, then raymond resume {id} --latest --agent {agent} --goto {source}"


def _kind(agent: Agent) -> str:
    return agent.visit.stuck.kind if agent.visit.stuck else ""


def _more(run: Run) -> str:
    """The flag that raises the limit which was reached: to twice as much, and to more than is used up."""
    assert run.stop is not None
    limit, amount = run.stop.limit, run.stop.amount
    match limit:
        case "budget":
            return f"--budget {_dollars(2 * amount if run.cost < 1.5 * amount else 2 * run.cost)}"
        case "iterations":
            return f"--max-iterations {max(2 * round(amount), run.iterations + 1)}"
        case "turns" | "unpriced":
            return f"--max-turns {max(2 * round(amount), run.turns + 1)}"
        case "time":
            return f"--max-time {durations.written(max(2 * amount, 1.0))}"
        case "wait":
            return "--now"
        case _:
            return ""


def _dollars(amount: float) -> str:
    """Dollars for a flag: rounded up to cents, or to whole dollars where there are many."""
    places = 0 if amount >= 10 else 2
    up = math.ceil(round(amount * 10**places, 6)) / 10**places
    return f"{up:.2f}".rstrip("0").rstrip(".") if places else f"{up:.0f}"
