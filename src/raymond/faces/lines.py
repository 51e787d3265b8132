"""What a person reads: a line per event, the ending in five lines, errors with place and hint."""

import os
import sys
from typing import TextIO

from raymond.errors import Diagnostic, Error, WorkflowError, visible
from raymond.machine import budget, prices
from raymond.machine.events import (
    AgentCalled,
    AgentEnded,
    AgentMoved,
    AgentReturned,
    AgentStarted,
    AskEnded,
    Decision,
    Event,
    StepFinished,
    StepStarted,
    WaitEnded,
)
from raymond.machine.run import Run
from raymond.views import times, words
from raymond.views.status import failed_agents, main_result, run_status

_WIDEST = 200
"""Letters of a line that are shown around the place of an error."""
_UNTOLD = (StepStarted, StepFinished)
_MOVES = (AgentStarted, AgentMoved, AgentCalled, AgentReturned, WaitEnded, AskEnded)


class Lines:
    """One line per event on stderr; what steps print, as they print it."""

    every = float("inf")
    keys = -1

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        self._stream = stream or sys.stderr
        self._quiet = quiet
        self._states: dict[str, str] = {}
        self._untold: list[tuple[Decision, str]] = []
        """Decisions, and what the run had cost with them: told together, the cost of telling is small."""

    def decided(self, run: Run, decisions: list[Decision]) -> None:
        """Tell what now stands in the journal; of nothing, where the agents are."""
        if self._quiet:
            return
        if not decisions:
            self._states = {agent.id: agent.state for agent in run.agents.values()}
        # What later decisions of the same moment cost is not yet part of what an earlier one shows.
        total, mark = run.cost, "~" if run.estimated else ""
        told = []
        for decision in reversed(decisions):
            told.append((decision, f"{mark}{prices.show(max(total, 0.0))}"))
            total -= words.cost_of([decision])
        self._untold += reversed(told)
        near = budget.warned(run, total)
        if near:
            self.said(near)

    def add(self, decision: Decision, total: str) -> None:
        """Tell one decision, with what the run had cost by then."""
        self._untold.append((decision, total))

    def refresh(self, run: Run | None = None) -> None:
        """Put every line that was not put yet."""
        if self._untold:
            text = "".join(self._lines(decision, total) for decision, total in self._untold)
            self._untold.clear()
            if text:
                self._put(text)

    def _lines(self, decision: Decision, total: str) -> str:
        told = [event for event in decision.events if type(event) not in _UNTOLD]
        if not told:
            return ""
        spent = words.spent(decision)
        at = times.instant(decision.time)
        lines = [self._line(event, spent, total) for event in told]
        return "".join(f"[{at}] {line}\n" for line in lines if line)

    def _line(self, event: Event, spent: dict[str, str], total: str) -> str:
        text = words.line(event)
        if text is None:
            return ""
        text = " ".join(text.splitlines())
        agent = getattr(event, "agent", "")
        if isinstance(event, _MOVES):
            was = self._states.get(agent)
            self._states[agent] = event.state
            if was:
                text = text.replace(f"{agent} -> ", f"{agent} {was} -> ", 1)
        elif isinstance(event, AgentEnded):
            self._states.pop(agent, None)
        return f"{text} {spent.pop(agent)} total {total}" if agent in spent else text

    def shown(self, agent: str, kind: str, text: str) -> None:
        """What a step prints, and the tools it uses."""
        if kind == "text" or (self._quiet and kind != "print"):
            return
        self.refresh()
        mark = "|" if kind == "print" else "*"
        self._put("".join(f"{agent} {mark} {line}\n" for line in text.splitlines() or [""]))

    def said(self, text: str) -> None:
        """Something a person should know."""
        self.refresh()
        self._put(f"{text}\n")

    def typed(self) -> list[tuple[str, str]]:
        """Nobody types where only lines are shown."""
        return []

    def _put(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            # Nobody reads along any more: the run goes on.
            self._stream = open(os.devnull, "w", encoding="utf-8")


def ending(run: Run) -> str:
    """Five lines: how, why, cost, result or failed agents, the next command."""
    id, status = run.start.workflow_id, run_status(run)
    # Told when nobody drives it any more: what should still run was abandoned.
    status = "abandoned" if status == "running" else status
    return "\n".join(
        (
            f"{status}: {id} after {words.lasted(run)}",
            f"why:    {_why(run, status)}",
            f"cost:   {words.money(run)} in {words.many(run.iterations, 'step')}",
            *_outcome(run),
            *(f"refused: {one}" for one in words.denied(run)),
            f"next:   {next_command(run)}",
        )
    )


def _why(run: Run, status: str) -> str:
    why = words.reason(run)
    if why:
        return why
    if status == "failed":
        return f"{words.many(run.failed, 'agent')} failed"
    ends = {"completed": "every agent has ended", "abandoned": "the process that drove it is gone"}
    return ends.get(status, "nothing can move")


def _outcome(run: Run) -> list[str]:
    failed = failed_agents(run)
    if failed:
        return [f"failed: {agent.id} in {agent.state}: {one_line(agent.error)}" for agent in failed[:5]]
    asking = [agent for agent in run.agents.values() if agent.status == "asking"]
    if asking:
        return [f"asks:   {agent.id}: {one_line(agent.question)}" for agent in asking[:5]]
    result = main_result(run)
    return [f"result: {one_line(result)}" if result is not None else "result: none yet"]


def one_line(text: str) -> str:
    """The first line of `text`, not too much of it."""
    first, _, rest = text.strip().partition("\n")
    return f"{first[:160]} ..." if rest or len(first) > 160 else first


def next_command(run: Run) -> str:
    """The command that leads on."""
    id, status = run.start.workflow_id, run_status(run)
    if status == "completed":
        return f"raymond logs {id}"
    asking = [agent.id for agent in run.agents.values() if agent.status == "asking"]
    if status == "waiting" and asking:
        return f"raymond answer {id} {asking[0]} TEXT, then raymond resume {id}"
    paused = any(agent.status == "paused" for agent in run.agents.values())
    if status == "paused" and paused and run.denied:
        import shlex

        flags = " ".join(f"--allow-tool {shlex.quote(tool)}" for tool in run.denied if tool not in run.allowed_tools)
        return f"raymond resume {id} {flags}".rstrip()
    if run.stopped and run.stopped.kind == "limit":
        words = ("budget", "max_iterations", "max_time", "max_turns")
        flag = next((word for word in words if word in run.stopped.reason), "")
        return f"raymond resume {id} --{flag.replace('_', '-')} MORE" if flag else f"raymond resume {id} --now"
    return f"raymond resume {id}"


def error(problem: Error) -> str:
    """An error as people read it: what, where, and the way out."""
    if isinstance(problem, WorkflowError):
        return "\n".join(diagnostic(one) for one in problem.diagnostics)
    lines = [f"error: {problem}", *([f"hint: {problem.hint}"] if problem.hint else [])]
    return "\n".join(visible(line) for text in lines for line in text.split("\n"))


def diagnostic(one: Diagnostic) -> str:
    """One finding with its line and a caret under the place."""
    lines = [visible(f"{one.severity}: {one.message}")]
    if one.line:
        lines.append(visible(f" --> {one.file}:{one.line}:{one.column or 1}"))
        if one.source:
            lines += _excerpt(one)
    elif one.file:
        # What was given on the command line stands in no file; it is its own place.
        lines.append(visible(f" --> {one.file} {one.source}".rstrip()))
    if one.hint:
        lines.append(visible(f"hint: {one.hint}"))
    return "\n".join(lines)


def _excerpt(one: Diagnostic) -> list[str]:
    from rich.cells import cell_len

    number, at = str(one.line), max(0, one.column - 1)
    margin = " " * len(number)
    start = max(0, at - _WIDEST // 2) if len(one.source) > _WIDEST else 0
    source = "".join(letter if _is_plain(letter) else "\ufffd" for letter in one.source[start : start + _WIDEST])
    # A tab is as wide as the terminal says, above and below; some letters are twice as wide as others.
    before = "".join("\t" if letter == "\t" else " " * cell_len(letter) for letter in source[: at - start])
    caret = before + "^" * max(1, cell_len(source[at - start : at - start + one.length]))
    return [f"{margin} |", f"{number} | {source}", f"{margin} | {caret}"]


def _is_plain(letter: str) -> bool:
    return letter.isprintable() or letter == "\t" or (letter > "\x9f" and letter.isspace())
