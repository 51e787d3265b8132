"""What people look at, made from a run: the state file, the status, a line per event."""

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

from raymond import durations
from raymond.machine import prices
from raymond.machine.agent import ASKING, PAUSED, READY, RUNNING, SLEEPING, WAITING, Agent
from raymond.machine.events import (
    AgentCalled,
    AgentEnded,
    AgentFailed,
    AgentHeld,
    AgentMoved,
    AgentPaused,
    AgentRetried,
    AgentReturned,
    AgentStarted,
    AgentWoke,
    AskEnded,
    AskStarted,
    BackendClosed,
    BackendOpened,
    Decision,
    Event,
    RequestTaken,
    RunEnded,
    RunResumed,
    RunStarted,
    RunStopped,
    Spent,
    StepFailed,
    StepInterrupted,
    StepRefused,
    WaitEnded,
    WaitStarted,
    WorkflowChanged,
)
from raymond.machine.run import Run, shut

RESULTS_SHOWN = 1000
_LAST = 253402300799
"""The last second that has a date."""


@lru_cache(maxsize=64)
def second(time: int) -> str:
    """UTC to the second, without a zone; cached, because a thousand lines are written in one second."""
    return datetime.fromtimestamp(min(time, _LAST), UTC).strftime("%Y-%m-%dT%H:%M:%S")


def instant(time: float) -> str | None:
    """UTC with seconds, as in logs; None for no time."""
    return f"{second(int(time))}Z" if time else None


def moment(text: str | None) -> float:
    """The time that `instant` wrote; 0 for none."""
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def status(run: Run) -> str:
    """running, paused, waiting, completed, failed or stopped."""
    if run.ended:
        return run.ended
    if run.stopped:
        return "paused" if run.stopped.kind in ("parked", "signal") else "stopped"
    counts = run.statuses
    could_start = any(queue and not shut(run, pool) for pool, queue in run.ready.items())
    if could_start or counts.get(RUNNING) or counts.get(SLEEPING):
        return "running"
    if counts.get(PAUSED) or counts.get(READY):
        return "paused"
    return "waiting" if counts.get(ASKING) or counts.get(WAITING) else "running"


def reason(run: Run, now: float = 0.0) -> str | None:
    """Why a run does not go on; with `now`, how long that still lasts."""
    if run.stopped and not run.ended:
        return run.stopped.reason
    for backend, closed in run.closed.items():
        left = f", in {durations.brief(closed.until - now)}" if now and closed.until > now else ""
        until = f" until {instant(closed.until)}{left}" if closed.until else ""
        return f"{backend} is closed{until}: {closed.error}"
    if status(run) == "waiting" and run.statuses.get(ASKING):
        return f"{many(run.statuses[ASKING], 'agent')} {'waits' if run.statuses[ASKING] == 1 else 'wait'} for an answer"
    if status(run) == "paused" and run.statuses.get(PAUSED):
        first = next(agent for agent in run.agents.values() if agent.status == PAUSED)
        return f"{many(run.statuses[PAUSED], 'agent')} paused, {first.id}: {first.error}"
    return None


def many(count: int, what: str) -> str:
    """`count` things, in words."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def document(run: Run) -> dict[str, Any]:
    """The state file's content."""
    start = run.start
    outcomes = list(run.outcomes.values())[-RESULTS_SHOWN:]
    return {
        "workflow_id": start.workflow_id,
        "scope_dir": start.scope_dir,
        "source": f"sources/{start.source}.zip",
        "status": status(run),
        "reason": reason(run),
        "started_at": instant(run.started_at),
        "updated_at": instant(run.now),
        "journal_seq": run.seq,
        "iteration_count": run.iterations,
        "max_iterations": run.max_iterations or None,
        "total_cost_usd": round(run.cost, 6),
        "cost_is_estimated": run.estimated,
        "budget_usd": run.budget or None,
        "agents": [_agent(run, agent) for agent in run.agents.values()],
        "fork_counters": run.fork_counters,
        "results": {one.agent: one.result for one in outcomes if one.status == "done"},
        "metadata": start.metadata,
    }


def _agent(run: Run, agent: Agent) -> dict[str, Any]:
    stack = [
        {"session": frame.session or None, "state": frame.state, "cwd": frame.cwd or run.start.cwd}
        for frame in agent.stack or ()
    ]
    return {
        "id": agent.id,
        "current_state": agent.state,
        "status": agent.status,
        "session_id": agent.session or None,
        "cwd": agent.cwd or run.start.cwd,
        "stack": stack,
        "variables": agent.variables or {},
        "pending_result": agent.input or None,
        "retry_count": agent.failures,
        "error": agent.error or None,
        "wake_at": instant(agent.wake_at),
        "question": agent.question or None,
        "since": instant(agent.since),
    }


def state_file(run: Run, journal_bytes: int = 0) -> bytes:
    """The state file's bytes; with the length of the journal it says what the journal says, as long as that is so."""
    return msgspec.json.encode(document(run) | ({"journal_bytes": journal_bytes} if journal_bytes else {})) + b"\n"


def parked(run: Run) -> str:
    """What the first Ctrl-C waits for, and what a second one loses."""
    names = [agent.id for agent in run.agents.values() if agent.status == RUNNING]
    if not names:
        return "parked: nothing is running"
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return (
        f"parked: nothing new starts; {many(len(names), 'running step')} to finish: {shown}\n"
        "Ctrl-C again stops now: what is not finished then runs again, and is paid again, on resume"
    )


def result(run: Run) -> str | None:
    """What the main agent returned."""
    outcome = run.outcomes.get("main")
    return outcome.result if outcome and outcome.status == "done" else None


def outcome(run: Run) -> dict[str, Any]:
    """How a run ended, for programs: `run --json`."""
    return {
        "workflow_id": run.start.workflow_id,
        "status": status(run),
        "reason": reason(run),
        "result": result(run),
        "results": {one.agent: one.result for one in run.outcomes.values() if one.status == "done"},
        "failed": {agent.id: agent.error for agent in failures(run)},
        "asks": {agent.id: agent.question for agent in run.agents.values() if agent.status == ASKING},
        "cost_usd": round(run.cost, 6),
        "cost_is_estimated": run.estimated,
        "denied": run.denied,
        "iterations": run.iterations,
        "agents": len(run.agents) + len(run.outcomes),
        "started_at": instant(run.started_at),
        "ended_at": instant(run.now) if run.ended or run.stopped else None,
    }


def cost_of(decisions: Iterable[Decision]) -> float:
    """What the steps that ended in these decisions cost."""
    return sum(event.cost for decision in decisions for event in decision.events if isinstance(event, Spent))


def spent(decision: Decision) -> dict[str, str]:
    """What each agent's step that ended here cost, as people read it; nothing for those that cost nothing."""
    ends = [event for event in decision.events if isinstance(event, Spent) and event.cost]
    return {event.agent: f"{'~' if event.estimated else ''}{prices.show(event.cost)}" for event in ends}


def denied(run: Run) -> list[str]:
    """The tools that were refused, how often, and the flag that would allow each."""
    since = {tool: count for tool, count in run.denied.items() if tool not in run.allowed_tools}
    most = sorted(since.items(), key=lambda pair: (-pair[1], pair[0]))
    return [f"{tool} {many(count, 'time')} (--allow-tool '{tool}' would allow it)" for tool, count in most[:5]]


def money(run: Run) -> str:
    """The run's cost as people read it."""
    return f"{'~' if run.estimated else ''}{prices.show(run.cost)}"


def exit_code(run: Run, signal: int = 0) -> int:
    """The first that holds: closed backend 5, limit 4, failed agent 1, waits for a person 3, done 0."""
    if signal and not run.ended:
        return 128 + signal
    if any(not closed.until and closed.kind in ("auth", "billing") for closed in run.closed.values()):
        return 5
    if run.stopped and run.stopped.kind == "limit" and not run.ended:
        return 4
    if run.failed:
        return 1
    return 0 if run.ended == "completed" else 3


def failures(run: Run) -> list[Agent]:
    """The agents that failed and that nobody collected."""
    return [agent for agent in run.agents.values() if agent.status == "failed"]


def line(event: Event) -> str | None:
    """`event` in one line; None when it says nothing to a person."""
    match event:
        case RunStarted():
            return f"run {event.workflow_id} started: {event.name} at {event.entry}{_budget(event)}"
        case RunResumed():
            return "run resumed"
        case WorkflowChanged():
            return f"run goes on with today's files ({event.source[:16]})"
        case RunStopped():
            return f"run stops: {event.reason}"
        case RunEnded():
            return f"run {event.status}"
        case BackendClosed():
            until = f" until {instant(event.until)}" if event.until else ""
            return f"{event.backend} closed{until} ({event.kind}): {event.error}"
        case BackendOpened():
            return f"{event.backend} is tried again" if event.probing else f"{event.backend} answers again"
        case RequestTaken():
            return f"request {event.kind} refused: {event.problem}" if event.problem else f"request {event.kind} taken"
        case StepRefused():
            if event.capped:
                return f"{event.agent} reached its share of the budget"
            if event.blocked:
                return f"{event.agent}: {event.reason}"
            return f"{event.agent} asked again: {event.reason}"
        case StepFailed():
            return f"{event.agent} step {event.step} failed ({event.kind}): {event.error}"
        case StepInterrupted():
            return f"{event.agent} step {event.step} interrupted"
        case _:
            return _agent_line(event)


def _budget(event: RunStarted) -> str:
    if not event.budget_from:
        return ""  # of a release that did not say where it came from
    return f", {f'budget {prices.show(event.budget)}' if event.budget else 'no budget'} ({event.budget_from})"


def _agent_line(event: Event) -> str | None:
    match event:
        case AgentHeld():
            return f"{event.agent} waits for {event.pool}"
        case AgentStarted():
            by = f" forked by {event.parent}" if event.parent else ""
            return f"{event.agent} starts at {event.state}{by}{_until(event.wake_at)}"
        case AgentMoved():
            return f"{event.agent} -> {event.state} ({event.tag}){_instead(event)}{_until(event.wake_at)}"
        case AgentCalled():
            return f"{event.agent} -> {event.state} ({event.tag}, then {event.then})"
        case AgentReturned():
            return f"{event.agent} -> {event.state} (result){_instead(event)}"
        case AgentWoke():
            return f"{event.agent} wakes"
        case WaitStarted():
            return f"{event.agent} waits for those it forked, then {event.state}"
        case WaitEnded():
            return f"{event.agent} -> {event.state} (wait{', timed out' if event.timed_out else ''}){_instead(event)}"
        case AskStarted():
            return f"{event.agent} asks: {event.question}"
        case AskEnded():
            how = "nobody answered" if event.timed_out else "answered"
            return f"{event.agent} -> {event.state} ({how}){_instead(event)}"
        case AgentEnded():
            return f"{event.agent} done"
        case AgentFailed():
            return f"{event.agent} failed ({event.kind}): {event.error}"
        case AgentPaused():
            return f"{event.agent} paused: {event.reason}"
        case AgentRetried():
            return f"{event.agent} tries again"
        case _:
            return None


def _instead(event: AgentMoved | AgentReturned | WaitEnded | AskEnded) -> str:
    return f" instead of {event.instead_of}, whose visits are used up" if event.instead_of else ""


def _until(wake_at: float) -> str:
    return f", sleeps until {instant(wake_at)}" if wake_at else ""


def lasted(run: Run, now: float = 0.0) -> str:
    """How long the run took, up to its last decision or to `now`."""
    return durations.show(max(0.0, (now or run.now) - run.started_at))
