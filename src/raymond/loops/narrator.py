"""Tells a loop in the lines that people and programs follow it by."""

import json
from collections.abc import Callable
from datetime import UTC, datetime

from raymond.drivers.face import Face, Quiet
from raymond.faces.lines import Lines
from raymond.loops import settings
from raymond.loops.formats import log_line
from raymond.loops.formats.foreign_text import cut, error_line
from raymond.loops.ledger import DONE, IDLE, Opened, opened
from raymond.loops.step import FAILS
from raymond.machine.events import (
    AgentEnded,
    AgentFailed,
    AgentMoved,
    AgentPaused,
    AgentStarted,
    AskEnded,
    AskStarted,
    BackendClosed,
    Decision,
    EvaluatorEnded,
    Event,
    GateEnded,
    StepFailed,
    StepFinished,
    StepStarted,
)
from raymond.machine.run import Run
from raymond.store import exports
from raymond.store.project import Project

_WORK = ("WORK.md", "REJECTED.md")
_ASIDE = {"1_START.py": "Preparing the workspace, and trying the checks", "CLOSE.py": "Running the closing checks"}
"""What is told of states that may take long."""


def beside(first: Face, project: Project, loop: str) -> list[Face]:
    """The faces of a loop: where there are only lines, its own take the place of those about agents and states."""
    tree = project.tree
    if isinstance(first, Lines):
        quiet = Lines(quiet=True)
        return [quiet, Narrator(tree, loop, (lambda _: None) if first.is_quiet else quiet.on_note)]
    dress(first, project)
    return [first, Narrator(tree, loop, first.on_note)]


def dress(face: Face, project: Project) -> None:
    """Give a live view the board of the loop."""
    from raymond.faces.live import Live  # where there is one, it is loaded by now
    from raymond.loops.board import LoopBoard

    if isinstance(face, Live):
        face.board = LoopBoard(project)


class Narrator(Quiet):
    """The lines of a loop, in a file and for whoever watches."""

    def __init__(self, tree: str, loop: str, tell: Callable[[str], None]) -> None:
        self._tree = tree
        self.name = exports.log(tree, loop)
        self._tell = tell
        self._items: dict[str, Opened] = {}
        """The items of the agents that do one."""
        self._untold: dict[str, list[str]] = {}
        """What is told of an agent when its first step begins, after the pause."""
        self._states: dict[str, str] = {}
        self._most, self._now = 0, 0.0

    def on_decisions(self, run: Run, decisions: list[Decision]) -> None:
        """Write what they mean for the loop."""
        self._most = settings.read(run.start.metadata.get(settings.VARIABLE, "")).most
        lines = []
        for decision in decisions:
            self._now = decision.time
            when = datetime.fromtimestamp(decision.time, UTC)
            for event in decision.events:
                for text in self._words(run, event):
                    lines.append(log_line.line(when, text))
                    self._tell(lines[-1])
        if lines:
            data = "".join(f"{line}\n" for line in lines)
            exports.append(self.name, self._tree, data.encode("utf-8", "backslashreplace"))

    def _words(self, run: Run, event: Event) -> list[str]:
        agent = getattr(event, "agent", "")
        if isinstance(event, AgentStarted):
            return self._started(event)
        if isinstance(event, BackendClosed):
            return [_waiting(event)]
        if isinstance(event, EvaluatorEnded) and event.decided and not event.verdict:
            return [f"The judge of the goal gave no verdict: {event.reason}"]
        if isinstance(event, AgentFailed) and event.kind == "evaluator":
            return [f"The judge of the goal failed: {event.error}"]
        if isinstance(event, AskStarted) and event.question.startswith(FAILS):
            return [f"Waiting for a person: {event.question.splitlines()[0]}"]
        if isinstance(event, StepStarted) and agent in run.agents and run.agents[agent].state in _ASIDE:
            return [_ASIDE[run.agents[agent].state]]
        if isinstance(event, GateEnded) and agent == "main":
            return [f"Before the first iteration: {_checked(event)}{_last_line(event.output)}"]
        if agent not in self._items and not self._knows(run, agent):
            return []
        item, state = self._items[agent], self._states.get(agent, "")
        if isinstance(event, StepStarted) and (untold := self._untold.pop(agent, None)):
            return [*untold, *self._words(run, event)]
        match event:
            case StepFinished() if state in _WORK:
                return [log_line.implemented()]
            case AskEnded(state="RETURNED.py"):
                return [log_line.implemented()]
            case StepStarted(phase="gate"):
                return [log_line.verifying(item.check)]
            case GateEnded():
                return [_checked(event)]
            case AgentMoved():
                self._states[agent] = event.state
                return [log_line.committing()] if (state, event.state) == ("PREPARE.py", "COMMIT.py") else []
            case AgentPaused(kind="review"):
                return [f"Waiting for a person: {event.reason}"]
            case AgentEnded():
                return [_ended(item, event.result)]
            case AgentFailed():
                return [f"Iteration {item.number} failed: {event.error}"]
            case StepFailed(again=True):
                wait = f" in {event.retry_at - self._now:.0f}s" if event.retry_at > self._now else ""
                return [f"Trying again{wait} ({event.kind}): {cut(event.error, 200)}"]
            case _:
                return []

    def _started(self, event: AgentStarted) -> list[str]:
        if "question" in event.variables:
            return ["Pausing for review"]
        if "item" not in event.variables:
            return []
        item = opened(event.variables["item"])
        self._items[event.agent], self._states[event.agent] = item, event.state
        again = event.variables.get("again", "no") == "yes"
        count = log_line.starting(item.number, self._most, again=again)
        changed = event.variables.get("changed", "")
        shown = ["The prompt has changed:", *(f"  {line}" for line in changed.splitlines())] if changed else []
        self._untold[event.agent] = [count, log_line.selected(item.title), *shown]
        return []

    def _knows(self, run: Run, agent: str) -> bool:
        """Whether an agent does an item; one that another driver has started is looked up."""
        there = run.agents.get(agent)
        if there is None or "item" not in (there.variables or {}):
            return False
        self._items[agent], self._states[agent] = opened((there.variables or {})["item"]), there.state
        return True


def _waiting(event: BackendClosed) -> str:
    """That a backend takes no turns for a while, or until a person has done something."""
    until = f" until {datetime.fromtimestamp(event.until, UTC):%Y-%m-%dT%H:%M:%SZ}" if event.until else ""
    return f"Waiting{until} ({event.backend}, {event.kind}): {cut(event.error, 200)}"


def _checked(event: GateEnded) -> str:
    if event.verdict in ("passed", "failed"):
        return log_line.verified(0 if event.verdict == "passed" else event.exit_code or 1)
    return f"Verification {event.verdict.upper()}: {event.reason}"


def _last_line(output: str) -> str:
    last = output.strip().rpartition("\n")[2]
    return f": {cut(last, 200)}" if last else ""


def _ended(item: Opened, result: str) -> str:
    try:
        entry = json.loads(result)
        number, verdict = int(entry["number"]), entry["verdict"]
    except (ValueError, KeyError, TypeError):
        return f"Iteration {item.number} ended"
    seconds = float(entry.get("seconds", 0.0))
    if verdict == IDLE:
        return f"Iteration {number} changed nothing ({log_line.lasted(seconds)})"
    if verdict in DONE:
        return log_line.completed(number, seconds)
    why = error_line(str(entry.get("error", "")), 200)
    return f"Iteration {number} failed ({verdict}, {log_line.lasted(seconds)}): {why}"
