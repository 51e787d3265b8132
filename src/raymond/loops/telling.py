"""Tells what happens in a loop: event by event, as the lines of its log, as its board in the live view."""

import json
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Protocol

from msgspec import Struct

from raymond.drivers.face import Face, Quiet
from raymond.faces import words
from raymond.faces.foreign_text import hung, plain, width_of
from raymond.faces.lines import MARGIN, Lines, Tail
from raymond.faces.rows import Piece, Row, Symbols
from raymond.loops import checks, settings
from raymond.loops.formats import foreign_text, records
from raymond.loops.formats.foreign_text import cut, error_line, last_line, one_line
from raymond.loops.ledger import DONE, FAILED, IDLE, RED, Ledger, Opened, read_opened
from raymond.loops.loop_run import LoopRun, ledger_of
from raymond.loops.next_item import PAUSE
from raymond.loops.settings import RALPH, UNITS
from raymond.loops.step import FAILS
from raymond.machine.agent import Agent
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
    RunStarted,
    StepFailed,
    StepFinished,
    StepStarted,
    is_entry,
)
from raymond.machine.run import Run
from raymond.store import exports
from raymond.store.project import Project
from raymond.store.transcripts import TranscriptReader
from raymond.text import visible
from raymond.views.questions import Question
from raymond.views.status import is_checking, why_red

_WORK = ("WORK.md", "REJECTED.md")
_START = "1_START.py"
_ASIDE = {_START: "Preparing the workspace, and trying the checks", "CLOSE.py": "Running the closing checks"}
"""What is told of states that may take long."""
_MOST = 200
"""Characters of what others wrote."""

_BAR = 10
_COMMITS = 3
_NEXT = 3
"""Titles of the queue that are named."""
_PATIENCE = 2.0
"""Seconds for which the queue is not read again."""


class Told(Struct, frozen=True):
    """One thing that happened in a loop."""

    line: str
    """As the log has it, which programs read, too; empty when it is no line there."""
    sentence: str
    """As people read it; empty when another one says it."""


def _same(text: str) -> Told:
    return Told(text, text)


class Telling:
    """A loop as its events tell it, one decision after the other."""

    def __init__(self, transcripts: str) -> None:
        self._records = TranscriptReader(transcripts)
        self._loop, self._most, self._now = "", 0, 0.0
        self._states: dict[str, str] = {}
        self._items: dict[str, Opened] = {}
        """The items of the agents that do one."""
        self._untold: dict[str, list[Told]] = {}
        """What is told of an agent when its first step begins, after the pause."""

    def note(self, run: Run) -> None:
        """Note where a run is that is told from here on."""
        self._begin(run.start)
        self._states = {agent.id: agent.state for agent in run.agents.values()}
        named = {agent.id: agent.variables or {} for agent in run.agents.values()}
        self._items = {id: read_opened(given["item"]) for id, given in named.items() if "item" in given}

    def of(self, decision: Decision) -> Iterator[Told]:
        """What a decision tells."""
        self._now = decision.time
        for event in decision.events:
            yield from self._of(event)
            if is_entry(event):
                self._states[event.agent] = event.state

    def _begin(self, start: RunStarted) -> None:
        self._loop, self._most = start.loop, settings.read(start.metadata.get(settings.VARIABLE, "")).most

    def _of(self, event: Event) -> list[Told]:
        agent = getattr(event, "agent", "")
        state = self._states.get(agent, "")
        match event:
            case RunStarted():
                self._begin(event)
            case AgentStarted():
                return self._started(event)
            case BackendClosed():
                why = f"({event.backend}, {event.kind}): {cut(event.error, _MOST)}"
                utc = f" until {datetime.fromtimestamp(event.until, UTC):%Y-%m-%dT%H:%M:%SZ}" if event.until else ""
                local = f" until {words.instant(event.until)}" if event.until else ""
                return [Told(f"Waiting{utc} {why}", f"Waiting{local} {why}")]
            case EvaluatorEnded() if event.decided and not event.verdict:
                return [_same(f"The judge of the goal gave no verdict: {event.reason}")]
            case AgentFailed(kind="evaluator"):
                return [_same(f"The judge of the goal failed: {event.error}")]
            case AskStarted() if event.question.startswith(FAILS):
                return [_same(f"Waiting for a person: {event.question.splitlines()[0]}")]
            case StepStarted() if state in _ASIDE:
                return [_same(_ASIDE[state])]
            case AgentMoved() if state == _START:
                return [_same(f"Before the first item: {one}") for one in event.input.splitlines()]
            case GateEnded() if agent == "main":
                last = last_line(event.output, _MOST)
                last = f": {last}" if last else ""
                line = f"Before the first iteration: {_verified(event)}{last}"
                return [Told(line, f"Before the first iteration: {_checked(event)}")]
            case _:
                return self._of_item(event, self._items[agent], state) if agent in self._items else []
        return []

    def _of_item(self, event: Event, item: Opened, state: str) -> list[Told]:
        match event:
            case StepStarted():
                untold = self._untold.pop(event.agent, [])
                begins = Told(records.verifying_line(item.check), f"Running the check: {one_line(item.check)}")
                return [*untold, begins] if event.phase == "gate" else untold
            case StepFinished() if state in _WORK:
                said = "".join(str(line.get("said", "")) for line in self._records.ended(event))
                return [Told(records.implemented_line(), _ended_turn(said))]
            case AskEnded(state="RETURNED.py"):
                return [Told(records.implemented_line(), _ended_turn(event.answer))]
            case GateEnded():
                return [Told(_verified(event), _checked(event))]
            case AgentPaused(kind="review"):
                return [_same(f"Waiting for a person: {event.reason}")]
            case AgentEnded():
                return [self._done(item, event.result)]
            case AgentFailed():
                return [_same(f"{self._unit} {item.number} failed: {event.error}")]
            case StepFailed(again=True):
                wait = f" in {event.retry_at - self._now:.0f}s" if event.retry_at > self._now else ""
                return [_same(f"Trying again{wait} ({event.kind}): {cut(event.error, _MOST)}")]
            case _ if is_entry(event) and (state, event.state) == ("PREPARE.py", "COMMIT.py"):
                return [Told(records.committing_line(), "")]
            case _:
                pass
        return []

    def _started(self, event: AgentStarted) -> list[Told]:
        if "question" in event.variables:
            return [Told("Pausing for review", "Pausing: a person goes on with it")]
        if "item" not in event.variables:
            return []
        item = read_opened(event.variables["item"])
        self._items[event.agent] = item
        again = event.variables.get("again", "no") == "yes"
        line = records.starting_line(item.number, self._most, again=again)
        most = f" of {self._most}" if self._most else ""
        title = "" if self._loop == settings.RALPH else f": {one_line(item.title)}"
        sentence = f"{self._unit} {item.number}{most}{' again' if again else ''}{title}"
        changed = event.variables.get("changed", "")
        shown = ["The prompt has changed:", *(f"  {one}" for one in changed.splitlines())] if changed else []
        self._untold[event.agent] = [
            Told(line, sentence),
            Told(records.selected_line(item.title), ""),
            *map(_same, shown),
        ]
        return []

    @property
    def _unit(self) -> str:
        return settings.UNITS.get(self._loop, "item").capitalize()

    def _done(self, item: Opened, result: str) -> Told:
        try:
            entry = json.loads(result)
            number, verdict = int(entry["number"]), entry["verdict"]
        except (ValueError, KeyError, TypeError):
            return Told(f"Iteration {item.number} ended", f"{self._unit} {item.number} ended")
        seconds = float(entry.get("seconds", 0.0))
        lasted, commit = records.duration(seconds), str(entry.get("commit", ""))[:12]
        saved = f", committed as {commit}" if commit else ""
        if verdict == IDLE:
            told = f"{number} changed nothing ({lasted})"
            return Told(f"Iteration {told}", f"{self._unit} {told}")
        if verdict in DONE:
            return Told(records.completed_line(number, seconds), f"{self._unit} {number} is done{saved} ({lasted})")
        why = error_line(str(entry.get("error", "")), _MOST)
        if verdict == RED:  # no failure: the next one goes on from there
            red = f"{self._unit} {number} ended with a red check{saved} ({lasted})"
            return Told(f"Iteration {number} red ({lasted}): {why}", red)
        line = f"Iteration {number} failed ({verdict}, {lasted}): {why}"
        how = "" if verdict == FAILED else f"{verdict}, "
        return Told(line, f"{self._unit} {number} failed ({how}{lasted}): {why}")


def _ended_turn(said: str) -> str:
    claims = ", and says it is done" if foreign_text.claims_done(said) else ""
    return f"The agent ended its turn{claims}"


def _verified(event: GateEnded) -> str:
    if event.verdict in ("passed", "failed"):
        is_green = event.verdict == "passed"
        code = int(not is_green) if event.exit_code is None else event.exit_code
        return records.verified_line(code, is_green=is_green)
    return f"Verification {event.verdict.upper()}: {event.reason}"


def _checked(event: GateEnded) -> str:
    return f"Check {checks.outcome_of(event)}"


class LoopLines:
    """What happened in a loop as lines on stdout, told afterwards."""

    def __init__(self, transcripts: str, tail: Tail, since: float) -> None:
        self._telling = Telling(transcripts)
        self._tail = tail
        self._since = since

    def show(self, decisions: Iterable[Decision]) -> None:
        """Print what these tell."""
        width = width_of(sys.stdout)
        with words.times_for(sys.stdout):
            for decision in decisions:
                for told in self._telling.of(decision):
                    if told.sentence and decision.time >= self._since:
                        line = f"[{words.instant(decision.time)}] {told.sentence}"
                        self._tail.put("\n".join(hung(visible(line), MARGIN, width)) + "\n")
        self._tail.end()


# In its log, and on the terminal of whoever watches


class Screen(Protocol):
    """Where a loop is told to whoever watches."""

    @property
    def is_terminal(self) -> bool:
        """Whether a person looks at it, and no program reads it."""

    def on_note(self, text: str) -> None:
        """Show a line."""

    def tell(self, at: float, text: str) -> None:
        """Show a line with its time."""


def beside(first: Face, project: Project, id: str, loop: str) -> list[Face]:
    """The faces of a loop: where there are only lines, its own take the place of those about agents and states."""
    if isinstance(first, Lines):
        quiet = Lines(quiet=True)
        return [quiet, Narrator(project, id, loop, None if first.is_quiet else quiet)]
    live = dress(first, project)
    return [first, Narrator(project, id, loop, live)]


def dress(face: Face, project: Project) -> Screen | None:
    """Give a live view the board of the loop; None if the face is none."""
    from raymond.faces.live import Live  # where there is one, it is loaded by now

    if not isinstance(face, Live):
        return None
    face.give(LoopBoard(project))
    return face


class Narrator(Quiet):
    """What happens in a loop, line by line: in a file for programs, and on a screen for whoever watches."""

    def __init__(self, project: Project, id: str, loop: str, screen: Screen | None = None) -> None:
        self._tree = project.tree
        self.name = exports.log(project.tree, loop)
        self._telling: Telling | None = None
        self._transcripts = project.run(id).transcripts
        self._screen = screen

    def on_decisions(self, run: Run, decisions: list[Decision]) -> None:
        """Write what they mean for the loop."""
        if self._telling is None:
            self._telling = Telling(self._transcripts)
            self._telling.note(run)
        lines = []
        for decision in decisions:
            when = datetime.fromtimestamp(decision.time, UTC)
            for told in self._telling.of(decision):
                line = records.log_line(when, told.line) if told.line else ""
                lines += [f"{line}\n"] if line else []
                self._show(decision.time, told, line)
        if lines:
            exports.append(self.name, self._tree, "".join(lines).encode("utf-8", "backslashreplace"))

    def _show(self, at: float, told: Told, line: str) -> None:
        if self._screen is None:
            return
        if not self._screen.is_terminal and line:
            self._screen.on_note(line)
        elif self._screen.is_terminal and told.sentence:
            self._screen.tell(at, told.sentence)


# Its board in the live view


class LoopBoard:
    """What a loop has handed on, and what stands in its queue."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._handed: str | None = None
        self._ledger = Ledger()
        self._queue: list[str] = []
        self._most = 0
        self._looked = float("-inf")

    def rows(self, run: Run, look: Symbols, now: float) -> list[Row]:
        """The rows of the loop, as far as there is something to say."""
        self._read(run)
        worker = next((one for one in run.agents.values() if "item" in (one.variables or {})), None)
        item = _item(worker, look) if worker else []
        return [self._progress(run, look), *item, *self._commits(), *self._next()]

    def enter(self, asked: Question) -> str:
        """Enter goes on with a loop that has paused, as its question says."""
        return "continue" if asked.state == PAUSE else ""

    def _read(self, run: Run) -> None:
        """Take note of what was handed on; people edit the queue, so it is looked at now and then."""
        main = run.agents.get("main")
        handed = (main.visit.rest.input if main.visit.rest else main.visit.input) if main else ""
        if handed != self._handed:
            self._handed, self._ledger, self._looked = handed, ledger_of(run), float("-inf")
        if time.monotonic() - self._looked > _PATIENCE:
            loop = LoopRun(self._project, run)
            self._most = loop.settings.most
            self._queue = [] if loop.loop == RALPH else [one.title for one in loop.selection().ready]
            self._looked = time.monotonic()

    def _progress(self, run: Run, look: Symbols) -> Row:
        ledger, most = self._ledger, self._most
        unit = UNITS.get(run.start.loop, "item")
        done, failed = len(ledger.done), len(ledger.failed) - len(ledger.red)
        dot = (f" {look.dot} ", "dim")
        used = f"{ledger.sessions} of {most}" if most else f"{ledger.sessions} (no limit)"
        row: Row = [(f"{unit} {used}", "bold"), dot]
        whole = most if run.start.loop == RALPH else ledger.whole(self._queue, most)
        if whole:
            row.append((f"{look.bar(min(done, whole) / whole, _BAR)} ", "green"))
        row += [(f"{done} done", "green" if done else ""), dot, (f"{failed} failed", "red" if failed else "")]
        return [*row, dot, (f"{len(self._queue):,} in the queue", "")] if run.start.loop != RALPH else row

    def _commits(self) -> Iterator[Row]:
        made = [one.commit[:12] for one in self._ledger.entries if one.commit]
        if made:
            named = ", ".join(reversed(made[-_COMMITS:]))
            yield [("commits  ", "dim"), (f"{len(made)}: {named}{', ...' if len(made) > _COMMITS else ''}", "")]

    def _next(self) -> Iterator[Row]:
        if self._queue:
            yield [("then     ", "dim"), (plain("; ".join(self._queue[:_NEXT])), "")]


def _item(agent: Agent, look: Symbols) -> list[Row]:
    """What an agent is at, and how its check stands."""
    given = agent.variables or {}
    attempt = (agent.prompted or {}).get("WORK.md", 1)
    again = f" {look.dot} attempt {attempt}" if attempt > 1 else ""
    item = read_opened(given["item"])
    who = "a person" if item.criteria else "none"
    check = [(plain(item.check), ""), *_found(agent, look)] if item.check else [(who, "")]
    title = (plain(item.title), "bold")
    return [[("item     ", "dim"), title, (again, "yellow")], [("check    ", "dim"), *check]]


def _found(agent: Agent, look: Symbols) -> list[Piece]:
    dot = (f" {look.dot} ", "dim")
    if is_checking(agent):
        return [dot, ("runs", "green")]
    if red := why_red(agent):
        return [dot, (f"red: {plain(red)}", "red")]
    found = agent.visit.gate_result
    return [dot, ("green", "green")] if found and found.verdict == "passed" else []
