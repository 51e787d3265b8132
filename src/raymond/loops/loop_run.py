"""A run that is a loop, as whoever drives it or looks at it sees it."""

import json
import os

from raymond.loops import ledger, settings
from raymond.loops.documents import Documents
from raymond.loops.formats import queue
from raymond.loops.ledger import Ledger
from raymond.loops.repository import Repository
from raymond.loops.selection import Selection, without
from raymond.loops.sources import source_of
from raymond.loops.wishes import STOP
from raymond.machine.agent import Agent
from raymond.machine.outcome import Outcome
from raymond.machine.run import Run
from raymond.store.project import Project
from raymond.system import git
from raymond.system.files import make_private


class LoopRun:
    """A loop: its run, its settings, its documents and its ledger."""

    def __init__(self, project: Project, run: Run) -> None:
        self.project = project
        self.run = run
        start = run.start
        self.id = start.workflow_id
        self.settings = settings.read(start.metadata.get(settings.VARIABLE, ""))
        self.loop = start.loop or self.settings.loop
        self.top = git.top(start.cwd) or start.cwd
        self.documents = Documents(start.cwd, self.settings.docs, self.top, self.settings.owns_plans)
        self.ledger = ledger_of(run)
        self.kept = ""
        """Where what items that failed have left in the tree is kept, once the loop has ended."""

    @property
    def worktree(self) -> str:
        """The worktree that was made for it, relative to the checkout it was started in; empty when there is none."""
        return os.path.relpath(self.top, self.settings.checkout) if self.settings.checkout else ""

    def file(self, name: str) -> str:
        """A file of the loop in the folder of the run."""
        folder = self.project.run(self.id).file("loop")
        make_private(folder)
        return os.path.join(folder, name)

    @property
    def repository(self) -> Repository:
        """The repository it works in."""
        return Repository(self.top, self.file("index"))

    @property
    def is_stopping(self) -> bool:
        """Whether somebody asked it to stop after the item it is at."""
        return not self.run.is_over and os.path.exists(self.file(STOP))

    @property
    def worker(self) -> Agent | None:
        """The agent that an item was given to, if it has not handed it back."""
        return next((one for one in self.run.agents.values() if "iteration" in (one.variables or {})), None)

    def selection(self) -> Selection:
        """What there is to do now besides what is open, and what of it can be worked on."""
        key = self.ledger.open.get("key") or queue.key_of(self.ledger.open.get("title", ""))
        found = source_of(self.documents, self.settings).look(self.ledger).selection
        return without(found, key)


def ledger_of(run: Run) -> Ledger:
    """The ledger of a loop: what it returned, what its main agent was given last, or what it waits with."""
    outcome = run.outcomes.get("main")
    if outcome and outcome.status == "done":
        return _read(outcome.result)
    main = run.agents.get("main")
    if main is None:
        return Ledger()
    if main.visit.rest:
        return _read(main.visit.rest.input or "")
    found = _read(main.visit.input)
    for one in main.visit.results or ():  # its script has not handed them on yet
        _take(found, one)
    return found


def _take(found: Ledger, outcome: Outcome) -> None:
    if outcome.status != "done":
        return  # the item is open until NEXT.py has looked at what its agent left
    found.open = {}
    try:
        found.entries.append(ledger.entry_of(json.loads(outcome.result)))
    except (ValueError, TypeError, AttributeError):
        return  # what a person or a judge said


def _read(text: str) -> Ledger:
    try:
        return ledger.read(text)
    except (ValueError, TypeError, KeyError):
        return Ledger()
