"""The command to run next: one that makes progress, and does not repeat a failure for money."""

import math
from collections.abc import Iterable

from raymond import durations, pasted
from raymond.machine import handled
from raymond.machine.agent import FAILED, PAUSED, SCRIPTED, Agent
from raymond.machine.run import Run, pool_of
from raymond.views.status import failed_agents, run_status, waits_for_review

_TO_BE_CHANGED = ("script", "unreadable", "visits", "cap", "refusal", "context")
"""Failures that come again, and may cost again, unless the state changes."""
_TOO_SHORT = {"silent": "timeout", "time": "max_time"}
"""Failures that come again unless the state gets more time, and the key of its policy that gives it."""


def next_command(run: Run, now: float = 0.0) -> str:
    """The command to run next; with `now`, a question whose time is over is not to be answered."""
    id, status = run.start.workflow_id, run_status(run)
    if run.is_over:
        return f"raymond {'apply' if run.saved else 'logs'} {id}"
    asking = [agent for agent in run.agents.values() if agent.status == "asking"]
    if status == "waiting" and not all(agent.visit.is_overdue(now) for agent in asking):
        return f"raymond answer {id}"
    if any(waits_for_review(agent) for agent in run.agents.values()):
        return f"raymond review {id}"
    paused = any(agent.status == "paused" for agent in run.agents.values())
    if status == "paused" and paused and run.denied:
        return f"raymond resume {id} {_allowing(run, run.denied)}".rstrip()
    if status != "failed" and more(run):
        return f"raymond resume {id}{more(run)}"
    return _after_failures(run, failed_agents(run))


def instead_of_resume(run: Run) -> str:
    """What to do about a run that failed and cannot be resumed; empty when there is nothing to do."""
    return handled.advice(run) if run.final_status == FAILED else ""


def other_commands(run: Run) -> list[str]:
    """What else makes progress: what a step depends on may have changed outside of the workflow."""
    failed = failed_agents(run)
    if run.is_over or run.stop or len(failed) != 1 or failed[0].visit.detour:
        return []
    if _kind(failed[0]) not in ("script", *_TOO_SHORT):
        return []
    its = f"raymond resume {run.start.workflow_id} --agent {failed[0].id}"
    elsewhere = [f"{its} {_going(run.start.entry)}"] if failed[0].state != run.start.entry else []
    return [f"{its} --retry", *elsewhere]


def after_failure(run: Run, agent: Agent) -> str:
    """What lets an agent continue that has failed, or is paused, so that it does not fail the same way again."""
    id = run.start.workflow_id
    if waits_for_review(agent):
        return f"raymond review {id}"
    if agent.status == FAILED and _kind(agent) == "script" and agent.visit.detour:
        return _back(id, agent.id, *agent.visit.detour)
    at_fault = _at_fault(run, agent) if agent.status == FAILED else ""
    if at_fault:
        longer, file = _TOO_SHORT.get(_kind(agent)), pasted.name(at_fault)
        if longer:
            either = f"{longer} or tool_timeout" if longer == "timeout" and at_fault.endswith(".md") else longer
            return f"set a longer {either} in {file}, then: raymond resume {id} --latest{more(run)}"
        return f"change {file}, then: raymond resume {id} --latest{more(run)}"
    denied = agent.visit.stuck.tools if agent.visit.stuck and agent.status == PAUSED else ()
    return f"raymond resume {id} --agent {agent.id} --retry {_allowing(run, denied)}".rstrip() + more(run)


def _allowing(run: Run, denied: Iterable[str]) -> str:
    """The flags that allow tools which the run may not use yet: without them, they are denied again."""
    return " ".join(pasted.flag("--allow-tool", one, "TOOL") for one in denied if one not in run.rights.allowed)


def _at_fault(run: Run, agent: Agent) -> str:
    """The file that has to change before the agent can get on; empty when none has to."""
    kind = _kind(agent)
    if kind == "setup" and pool_of(run, agent.state) in SCRIPTED:
        return "replies.yaml"
    if kind == "gate" and agent.visit.pending:
        return agent.state  # its check could not start
    return agent.state if kind in (*_TO_BE_CHANGED, *_TOO_SHORT) else ""


def _after_failures(run: Run, failed: list[Agent]) -> str:
    id = run.start.workflow_id
    kinds = [_kind(agent) for agent in failed]
    if any(kind in ("asked", "approval") for kind in kinds):
        return f"raymond resume {id} --on-ask wait{more(run)}"
    if "session" in kinds:
        return f"raymond resume {id} --fresh{more(run)}"
    for agent in failed:
        if _at_fault(run, agent):
            return after_failure(run, agent)
    return f"raymond resume {id}{more(run)}"


def _back(id: str, agent: str, source: str, used_up: str) -> str:
    """Out of the state that a loop without an end leads to: it fails on purpose, and would fail again."""
    then = f"raymond resume {id} --latest --agent {agent} {_going(source)}"
    return f"raise max_visits in {pasted.name(used_up)}, then: {then}"


def _going(state: str) -> str:
    return pasted.flag("--goto", state, "STATE")


def _kind(agent: Agent) -> str:
    return agent.visit.stuck.kind if agent.visit.stuck else ""


def more(run: Run) -> str:
    """The flag that raises the limit which was reached: to twice as much, and to more than is used up."""
    if not run.stop or run.stop.kind != "limit":
        return ""
    limit, amount = run.stop.limit, run.stop.amount
    match limit:
        case "budget":
            return f" --budget {_dollars(2 * amount if run.cost < 1.5 * amount else 2 * run.cost)}"
        case "iterations":
            return f" --max-iterations {max(2 * round(amount), run.iterations + 1)}"
        case "turns" | "unpriced":
            return f" --max-turns {max(2 * round(amount), run.turns + 1)}"
        case "time":
            driven = run.driven + max(0.0, run.driven_until - run.resumed_at)
            more = 2 * amount if driven < 1.5 * amount else math.ceil(2 * driven)
            return f" --max-time {durations.written(max(more, 1.0))}"
        case "wait":
            return " --now"
        case _:
            return ""


def _dollars(amount: float) -> str:
    """Dollars for a flag: rounded up to cents, or to whole dollars where there are many."""
    places = 0 if amount >= 10 else 2
    up = math.ceil(round(amount * 10**places, 6)) / 10**places
    return f"{up:.2f}".rstrip("0").rstrip(".") if places else f"{up:.0f}"
