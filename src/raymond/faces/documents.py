"""A run as JSON: the state file, which `status --json` prints with whole texts, and the document of `run --json`."""

import sys
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from raymond.faces.words import stuck, why
from raymond.machine.agent import ASKING, PAUSED, Agent, Outcome, Whole
from raymond.machine.run import Run
from raymond.machine.schedule import wake_at
from raymond.views.questions import Question
from raymond.views.status import (
    collected_failures,
    exit_code,
    failed_agents,
    is_checking,
    main_result,
    run_status,
    why_red,
)
from raymond.views.times import instant

RESULTS_SHOWN = 1000
GONE = "its process is gone"
"""Why a run that should be running does not."""
LONGEST_TEXT = 16 << 10
"""Characters of a text in the state file, which is written often; only questions are always whole."""
_encoder = msgspec.json.Encoder()


def state_file(run: Run, *, status: str = "", pid: int = 0, whole: Whole | None = None) -> bytearray:
    """The state file. `status` and `pid` come from whoever looked at the run from outside.

    Texts are cut unless `whole` is given. Every agent is encoded by itself, into one buffer: as dictionaries, ten
    thousand of them are three times the file.
    """
    longest = sys.maxsize if whole else LONGEST_TEXT
    text = bytearray(_encoder.encode(_head(run, status, pid)))
    text[-1:] = b',"agents":['
    for agent in run.agents.values():
        _encoder.encode_into(_agent(run, agent, longest), text, -1)
        text += b","
    text[-1 if run.agents else len(text) :] = b"],"
    text += memoryview(_encoder.encode(_tail(run, longest, whole)))[1:]
    text += b"\n"
    return text


def _head(run: Run, status: str = "", pid: int = 0) -> dict[str, Any]:
    start = run.start
    return {
        "workflow_id": start.workflow_id,
        "scope_dir": start.scope_dir,
        "source": f"sources/{start.source}.zip",
        "workflow": start.loop or start.name,
        "status": status or run_status(run),
        "pid": pid or None,
        "reason": why(run) or (GONE if status == "interrupted" else None),
        "exit_code": None if (status or run_status(run)) in ("running", "stopping") else exit_code(run),
        "is_over": run.is_over,
        "stop_kind": run.stop.kind if run.stop else None,
        "started_at": instant(run.started_at),
        "updated_at": instant(run.now),
        "due_at": instant(wake_at(run) or 0.0) if not run.stop and not run.final_status else None,
        "journal_seq": run.seq,
        "iteration_count": run.iterations,
        "max_iterations": run.limits.max_iterations or None,
        "total_cost_usd": round(run.billed, 6),
        "scripted_cost_usd": round(run.scripted, 6),
        "cost_is_estimated": run.estimated,
        "budget_usd": run.limits.budget or None,
        "workspace": start.workspace,
        "work": run.saved or None,
    }


def _tail(run: Run, longest: int, whole: Whole | None = None) -> dict[str, Any]:
    return {
        "agents_started": run.started,
        "agents_failed": run.lost + run.failed_count,
        "collected_failures": _failures(run, longest, len(run.outcomes) if whole else RESULTS_SHOWN),
        "fork_counters": {agent.id: agent.forks for agent in run.agents.values() if agent.forks},
        "results": _results(list(run.outcomes.values())[-RESULTS_SHOWN:], whole),
        "labels": _labels(list(run.outcomes.values())[-RESULTS_SHOWN:]),
        "metadata": _cut_all(run.start.metadata, longest),
    }


def _results(outcomes: Iterable[Outcome], whole: Whole | None) -> dict[str, str]:
    return {one.agent: whole(one) if whole else _begin(one) for one in outcomes if one.status == "done"}


def _failures(run: Run, longest: int, most: int) -> dict[str, str]:
    return {one.agent: _cut(one.error, longest) for one in collected_failures(run)[:most]}


def _labels(found: Iterable[Outcome | Agent]) -> dict[str, str]:
    return {one.agent if isinstance(one, Outcome) else one.id: one.label for one in found if one.label}


def _begin(outcome: Outcome) -> str:
    if not outcome.long:
        return _cut(outcome.result, LONGEST_TEXT)
    return f"{outcome.result}{_left_out(outcome.length - len(outcome.result))}"


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}{_left_out(len(text) - longest)}"


def _left_out(count: int) -> str:
    return f"\n[{count:,} more characters: `raymond status --json` has them]"


def _cut_all(texts: Mapping[str, str], longest: int) -> dict[str, str]:
    return {name: _cut(text, longest) for name, text in texts.items()}


def _agent(run: Run, agent: Agent, longest: int) -> dict[str, Any]:
    stack = [
        {
            "session": frame.conversation.session if frame.conversation else None,
            "state": frame.state,
            "cwd": frame.cwd or run.start.cwd,
        }
        for frame in agent.stack or ()
    ]
    visit = agent.visit
    return {
        "id": agent.id,
        "label": agent.label or None,
        "current_state": agent.state,
        "status": agent.status,
        "session_id": agent.session or None,
        "cwd": agent.cwd or run.start.cwd,
        "stack": stack,
        "variables": _cut_all(agent.variables or {}, longest),
        "pending_result": _cut(visit.input, longest) or None,
        "retry_count": visit.failures,
        "error": _cut(stuck(agent), longest) or None,
        "wake_at": instant(visit.wake_at),
        "question": agent.question or None,
        "question_number": agent.asks or None,
        "approve": (visit.rest.approve if visit.rest else "") or None,
        "choices": list(visit.rest.choices) if visit.rest else [],
        "files": list(visit.rest.files) if visit.rest else [],
        "review": review(agent),
        "gate": _gate(agent),
        "since": instant(visit.since),
    }


def review(agent: Agent) -> str | None:
    """Why the green check of an agent does not count before a person has looked at it; None when nothing waits."""
    return agent.visit.review.verdict if agent.status == PAUSED and agent.visit.review else None


def _gate(agent: Agent) -> dict[str, Any] | None:
    """The gate of its visit; None when none runs and none was red."""
    why = why_red(agent)
    if not why and not is_checking(agent):
        return None
    return {"running": is_checking(agent), "told": agent.visit.gate_tries, "reason": why or None}


def outcome(run: Run, status: str = "", whole: Whole | None = None) -> dict[str, Any]:
    """How a run ended, for programs: `run --json`. Long results of forked agents are cut unless `whole` is given."""
    result = main_result(run)
    return {
        "workflow_id": run.start.workflow_id,
        "status": status or run_status(run),
        "reason": why(run),
        "exit_code": exit_code(run),
        "result": result,
        "results": _results(run.outcomes.values(), whole) | ({} if result is None else {"main": result}),
        "collected_failures": _failures(run, sys.maxsize, len(run.outcomes)),
        "failed": {agent.id: stuck(agent) for agent in failed_agents(run)},
        "asks": {agent.id: agent.question for agent in run.agents.values() if agent.status == ASKING},
        "questions": {agent.id: agent.asks for agent in run.agents.values() if agent.status == ASKING},
        "labels": _labels([*run.outcomes.values(), *run.agents.values()]),
        "cost_usd": round(run.billed, 6),
        "scripted_cost_usd": round(run.scripted, 6),
        "cost_is_estimated": run.estimated,
        "denied": run.denied,
        "iterations": run.iterations,
        "agents": run.started,
        "agents_failed": run.lost + run.failed_count,
        "workspace": run.start.workspace,
        "work": run.saved or None,
        "started_at": instant(run.started_at),
        "ended_at": instant(run.now) if run.final_status or run.stop else None,
    }


def question(asked: Question, project: str, command: str) -> dict[str, Any]:
    """An open question of a run in `project`, with the `command` that answers it: `inbox --json`."""
    return {
        "workflow_id": asked.workflow_id,
        "project": project,
        "agent": asked.agent,
        "label": asked.label or None,
        "state": asked.state,
        "question": asked.text,
        "question_number": asked.number,
        "asked_at": instant(asked.asked_at),
        "deadline": instant(asked.deadline),
        "approve": asked.approve or None,
        "choices": asked.choices,
        "files": asked.files,
        "command": command,
    }
