"""The board of a loop in the live view: how far it is, its item with the check, its commits, its queue."""

import time
from collections.abc import Iterator

from raymond.faces.look import Look
from raymond.faces.plain_text import plain
from raymond.faces.rows import Piece, Row
from raymond.loops.ledger import Ledger, opened
from raymond.loops.loop_run import LoopRun, ledger_of
from raymond.loops.next_item import PAUSE
from raymond.loops.settings import RALPH, UNITS
from raymond.machine.agent import Agent
from raymond.machine.run import Run
from raymond.store.project import Project
from raymond.views.checking import is_checking, why_red
from raymond.views.questions import Question

_BAR = 10
_COMMITS = 3
_NEXT = 3
"""Titles of the queue that are named."""
_PATIENCE = 2.0
"""Seconds for which the queue is not read again."""


class LoopBoard:
    """What a loop has handed on, and what stands in its queue."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._handed: str | None = None
        self._ledger = Ledger()
        self._queue: list[str] = []
        self._most = 0
        self._looked = float("-inf")

    def rows(self, run: Run, look: Look, now: float) -> list[Row]:
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

    def _progress(self, run: Run, look: Look) -> Row:
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


def _item(agent: Agent, look: Look) -> list[Row]:
    """What an agent is at, and how its check stands."""
    given = agent.variables or {}
    attempt = (agent.prompted or {}).get("WORK.md", 1)
    again = f" {look.dot} attempt {attempt}" if attempt > 1 else ""
    item = opened(given["item"])
    who = "a person" if item.criteria else "none"
    check = [(plain(item.check), ""), *_found(agent, look)] if item.check else [(who, "")]
    title = (plain(item.title), "bold")
    return [[("item     ", "dim"), title, (again, "yellow")], [("check    ", "dim"), *check]]


def _found(agent: Agent, look: Look) -> list[Piece]:
    dot = (f" {look.dot} ", "dim")
    if is_checking(agent):
        return [dot, ("runs", "green")]
    if red := why_red(agent):
        return [dot, (f"red: {plain(red)}", "red")]
    found = agent.visit.gate_result
    return [dot, ("green", "green")] if found and found.verdict == "passed" else []
