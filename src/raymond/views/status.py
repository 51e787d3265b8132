"""The status of a run and of its agents, its exit code and its result; its row in a list, and the group of that."""

from typing import Any

import msgspec
from msgspec import Struct

from raymond.machine.agent import ASKING, PAUSED, READY, RUNNING, SLEEPING, WAITING, Agent, Outcome
from raymond.machine.run import CANCELLED, Run, shut
from raymond.machine.schedule import wake_at

UNFINISHED = 3
"""The exit code of a run that somebody can continue."""
_LOOP_ENDED = {0: "completed", 4: "stopped"}
"""How a loop has ended, by its exit code; with every other one, it failed."""

NEEDS_YOU, WORKING, RESTING, DONE = "needs you", "working", "resting", "done"
GROUPS = (NEEDS_YOU, WORKING, RESTING, DONE)
STATUSES = (
    *("running", "stopping", "waiting", "answered", "interrupted", "paused", "stopped"),
    *("failed", "completed", "cancelled", "unreadable"),
)
"""How a run can look from outside."""
_STOPPED_BY_PERSON = ("stop", "paused", "signal")
"""Kinds of stops after which nobody is waited for."""


def run_status(run: Run) -> str:
    """running, paused, waiting, completed, failed or stopped."""
    if run.final_status == "completed" and run.start.loop:
        return _LOOP_ENDED.get(loop_result(run).get("exit_code", 0), "failed")
    if run.final_status:
        return run.final_status
    if run.stop:
        return "paused" if run.stop.kind in ("paused", "signal") else "stopped"
    counts = run.statuses
    could_start = any(queue and not shut(run, pool) for pool, queue in run.ready.items())
    if could_start or counts.get(RUNNING) or counts.get(SLEEPING):
        return "running"
    if counts.get(PAUSED) or counts.get(READY):
        return "paused"
    return "waiting" if counts.get(ASKING) or counts.get(WAITING) else "running"


def is_answered(run: Run) -> bool:
    """Whether a person answered or decided after its driver had left, and nobody has continued it."""
    is_idle = not run.statuses.get(RUNNING) and wake_at(run) is None
    return run.answered and is_idle and run_status(run) == "running"


def waits_for_review(agent: Agent) -> bool:
    """Whether a person has to look at its work before it continues."""
    return agent.status == PAUSED and agent.visit.review is not None


def only_reviews(run: Run) -> bool:
    """Whether nothing but reviews keeps the run from continuing: to resume it would change nothing."""
    if run.stop or run.closed or run.final_status or wake_at(run) is not None:
        return False
    idle = [agent for agent in run.agents.values() if agent.status != WAITING]
    return bool(idle) and all(waits_for_review(agent) for agent in idle)


def main_result(run: Run) -> str | None:
    """What the main agent returned."""
    outcome = run.outcomes.get("main")
    return outcome.result if outcome and outcome.status == "done" else None


def loop_result(run: Run) -> dict[str, Any]:
    """What a loop that has ended says of itself: `exit_code` and `text`; empty for other runs."""
    result = main_result(run) if run.start.loop else None
    try:
        found: dict[str, Any] = msgspec.json.decode(result or "{}")
    except msgspec.DecodeError:
        return {}
    return found


def told_result(run: Run) -> str | None:
    """The result of a run as people are told it: that of a loop is a document, which says itself in a line."""
    return loop_result(run).get("text") or main_result(run)


def exit_code(run: Run, signal: int = 0) -> int:
    """The first that applies: cancelled 1, closed backend 5, limit 4, failed 1, waiting for a person 3, completed 0."""
    if run.final_status == CANCELLED:
        return 1
    if signal and not run.final_status:
        return 128 + signal
    if any(not closed.until and closed.kind in ("auth", "billing") for closed in run.closed.values()):
        return 5
    if run.stop and run.stop.kind == "limit" and not run.final_status:
        return 4
    if run.failed_count or run.final_status == "failed":
        return 1
    if run.final_status != "completed":
        return UNFINISHED
    return int(loop_result(run).get("exit_code", 0)) if run.start.loop else 0


def collected_failures(run: Run) -> list[Outcome]:
    """The agents that failed and that a wait has collected: those that the workflow did not expect come first."""
    failed = [one for one in run.outcomes.values() if one.status == "failed"]
    return sorted(failed, key=lambda one: one.agent not in run.faults)


def failed_agents(run: Run) -> list[Agent]:
    """The agents that failed and whose failure no parent has collected."""
    return [agent for agent in run.agents.values() if agent.status == "failed"]


# Checks


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


# Rows and their groups


def group(status: str, *, driven: bool, questions: int, stop_kind: str | None, reviews: int = 0) -> str:
    """The group of a run by its status as seen from outside; a failure, or a review at its end, needs the person."""
    if status in ("completed", "cancelled"):
        return NEEDS_YOU if reviews else DONE
    if questions or status == "unreadable":
        return NEEDS_YOU
    if driven:
        return WORKING
    if status in ("stopped", "paused") and stop_kind in _STOPPED_BY_PERSON:
        return RESTING
    return NEEDS_YOU


# A run in one row: what `list` shows of it


class RunRow(Struct, frozen=True, kw_only=True):
    """A run in one row of `list`; its JSON is the row of `list --json`."""

    workflow_id: str
    project: str
    status: str
    driven: bool
    pid: int | None = None
    """The process that drives it."""
    workflow: str = ""
    """The name of its workflow, or the kind of loop that it is."""
    at: str = ""
    """Where it stands: the state of its agent, the item of a loop, or how many agents it has."""
    is_over: bool = False
    """Nothing can continue it."""
    exit_code: int | None = None
    """What the command that drives it exits with; None while it runs."""
    agents: int = 0
    cost_usd: float = 0.0
    cost_is_estimated: bool = False
    scripted_cost_usd: float = 0.0
    """What scripted replies are said to have cost, which nobody paid."""
    started_at: str | None = None
    updated_at: str | None = None
    error: str | None = None
    """Why it cannot be read; its status is then `unreadable`."""
    group: str = NEEDS_YOU
    """needs you, working, resting or done."""
    reason: str | None = None
    """Why it does not continue."""
    questions: int = 0
    """Open questions."""
    reviews: int = 0
    """Agents whose work waits for the review of a person, and items of a loop that do."""
    agents_failed: int = 0
    """Agents that have failed."""
    budget_usd: float | None = None
