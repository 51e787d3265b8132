"""A run that is a loop, as seen from outside of its steps."""

import glob
import json
import os
from collections.abc import Callable
from functools import cached_property

from raymond import pasted
from raymond.loops import documents, ledger, settings, state
from raymond.loops.branch import LEFT, TIP, Branch
from raymond.loops.documents import Documents, Folder, stored
from raymond.loops.ledger import Ledger
from raymond.loops.next_item import LEASE, REST, STOP
from raymond.loops.source import Selection, without
from raymond.loops.sources import source_of
from raymond.loops.step import FAILS, branch_of, place_of
from raymond.machine.agent import ASKING, Agent
from raymond.machine.run import Run
from raymond.store import lock
from raymond.store.project import Project
from raymond.system import git
from raymond.system.files import make_private
from raymond.views.status import waits_for_review
from raymond.workspace.place import Place
from raymond.workspace.publish import Person, contains
from raymond.workspace.repository import Repository

_DOCS = "docs"
"""The default folder of documents."""


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
        self.checkout = Folder(start.cwd, self.settings.docs, self.top, self.settings.owned)
        """Its documents as they are in the person's checkout, where the state file is."""
        self.ledger = ledger_of(run, self._before_trouble)
        self.ledger.settle(state.decided(project.run(self.id)))

    def file(self, name: str) -> str:
        """A file of the loop in the folder of the run."""
        folder = self.project.run(self.id).file("loop")
        make_private(folder)
        return os.path.join(folder, name)

    def _before_trouble(self) -> Ledger:
        """What the main agent was given before its step had trouble: the answer of a person is its input since."""
        kept = glob.glob(glob.escape(self.file("trouble-main-")) + "*")
        if not kept:
            return Ledger()
        given = json.loads(documents.read(max(kept, key=os.path.getmtime)))
        found = _read(given["input"])
        for one in json.loads(given["values"]["results"] or "[]"):
            _take(found, one["status"], one["result"])
        return found

    @property
    def has_branch(self) -> bool:
        """Whether it has a branch with what counts."""
        if not self.settings.commits_anything:
            return False
        # A person may remove the references of a loop that is over.
        return bool(self.branch.commit_of(TIP)) or (not self.run.is_over and bool(self.branch.known(TIP)))

    @cached_property
    def place(self) -> Place:
        """Where its agents work."""
        return place_of(self.project, self.id, self.settings)

    @cached_property
    def branch(self) -> Branch:
        """Its branch."""
        folder = self.project.run(self.id).file("loop")
        make_private(folder)
        return branch_of(self.project, self.id, self.settings, Person(self.top, folder))

    def branch_in(self, repository: Repository) -> Branch:
        """Its branch, with trees that are made in another repository, such as that of its workspace."""
        return branch_of(self.project, self.id, self.settings, repository)

    @property
    def documents(self) -> Documents:
        """Its documents: as its branch has them, or as they are in the checkout of a loop without one."""
        return stored(self.checkout, self.branch.repository, self.branch.tip) if self.has_branch else self.checkout

    @property
    def left(self) -> str:
        """The reference with what items that did not count have left in the tree; empty when that is nothing."""
        left = self.branch.commit_of(LEFT) if self.has_branch else ""
        return self.branch.reference(LEFT) if left and not contains(self.top, self.branch.tip, left) else ""

    @property
    def docs_flag(self) -> str:
        """The flag that names its folder of documents, after a blank; empty for the default."""
        docs = os.path.normpath(self.checkout.docs)
        return "" if docs == _DOCS else f" {pasted.flag('--docs', docs, 'DIR')}"

    @property
    def is_driven(self) -> bool:
        """Whether another process is at it."""
        holder = lock.holder(self.project.run(self.id))
        return isinstance(holder, lock.Holder) and holder.pid != os.getpid()

    @property
    def is_stopping(self) -> bool:
        """Whether it was asked to stop after the item it is at."""
        return not self.run.is_over and os.path.exists(self.file(STOP))

    @property
    def worker(self) -> Agent | None:
        """The agent that an item was given to, if it has not handed it back."""
        return next((one for one in self.run.agents.values() if "item" in (one.variables or {})), None)

    @property
    def leased(self) -> Agent | None:
        """Internal mode: the agent whose item another program has."""
        return self._asking(LEASE)

    @property
    def rests(self) -> Agent | None:
        """Internal mode: the agent that waits until the next item is asked for."""
        return self._asking(REST)

    def _asking(self, state: str) -> Agent | None:
        for one in () if self.run.is_over else self.run.agents.values():
            if one.status == ASKING and one.state == state and not one.question.startswith(FAILS):
                return one
        return None

    @property
    def asking(self) -> Agent | None:
        """The agent whose question a person has to answer."""
        others = (self.leased, self.rests)
        for one in () if self.run.is_over else self.run.agents.values():
            if one.status == ASKING and one not in others:
                return one
        return None

    @property
    def needs_person(self) -> bool:
        """Whether a person has to answer or to review something before it goes on."""
        return bool(self.asking) or any(map(waits_for_review, () if self.run.is_over else self.run.agents.values()))

    def selection(self) -> Selection:
        """What there is to do now besides what is open, and what of it can be worked on."""
        found = source_of(self.documents, self.settings).look(self.ledger).selection
        return without(found, self.ledger.open.key) if self.ledger.open else found


def ledger_of(run: Run, before_trouble: Callable[[], Ledger] = Ledger) -> Ledger:
    """The ledger of a loop: what it returned, what its main agent was given last, or what it waits with."""
    outcome = run.outcomes.get("main")
    if outcome and outcome.status == "done":
        return _read(outcome.result)
    main = run.agents.get("main")
    if main is None:
        return Ledger()
    if main.visit.rest and main.visit.rest.input:
        return _read(main.visit.rest.input)
    if main.visit.input and not main.visit.input.startswith("{"):
        return before_trouble()
    found = _read(main.visit.input)
    for one in main.visit.results or ():  # its script has not handed them on yet
        _take(found, one.status, one.result)
    return found


def _take(found: Ledger, status: str, result: str) -> None:
    if status != "done":
        return  # the item is open until NEXT.py has looked at what its agent left
    found.open = None
    try:
        found.entries.append(ledger.read_entry(result))
    except ValueError:
        return  # what a person or a judge said


def _read(text: str) -> Ledger:
    try:
        return ledger.read(text)
    except ValueError:
        return Ledger()
