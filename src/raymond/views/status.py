"""The status of a run, its exit code and its result."""

from typing import Any

import msgspec

from raymond.machine.agent import ASKING, PAUSED, READY, RUNNING, SLEEPING, WAITING, Agent
from raymond.machine.outcome import Outcome
from raymond.machine.run import CANCELLED, Run, shut
from raymond.machine.schedule import wake_at

UNFINISHED = 3
"""The exit code of a run that somebody can continue."""
_LOOP_ENDED = {0: "completed", 4: "stopped"}
"""How a loop has ended, by its exit code; with every other one, it failed."""


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
