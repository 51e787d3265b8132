"""An item while an agent is at it: its tree, what was done there, and the states that its scripts go through."""

import os
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct

from raymond.loops import reasons
from raymond.loops.branch import TIP
from raymond.loops.documents import LOGS, PROGRESS, Stored
from raymond.loops.formats import foreign_text, queue, records
from raymond.loops.formats.queue_item import Item
from raymond.loops.ledger import Opened
from raymond.loops.step import Step
from raymond.verifier import rules
from raymond.workspace import harvest
from raymond.workspace.slot import Origin

DOCUMENTS = "documents"
"""The last part of the reference with what an agent changed in the plan, which does not count."""
_ADDED = '"{title}" was added to {path} while an agent worked; it counts as proposed'
_NAMED = 20
_LONGEST = 150
"""Characters of one reason."""
_TOLD = 50_000
"""Characters of what an agent wrote into documents that are handed on."""


class Work(Struct, kw_only=True):
    """What was done for an item."""

    tree: str = ""
    """The tree that was checked, or that is there; with the documents as they were."""
    changed: list[str] = []
    review: list[str] = []
    """What a person has to see before it counts."""
    conflicts: list[str] = []
    """Files with the marks of a conflict."""
    notes: list[str] = []
    """What the agent did besides its work."""
    proposed: list[str] = []
    """Raw items that the agent wants to be done."""
    told: dict[str, str] = {}
    """Sections of a session log that the agent wrote itself."""
    subjects: list[str] = []
    """Of the agent's own commits."""

    @property
    def reason(self) -> str:
        """Why it waits for a person; what may have got out comes first."""
        found = sorted(self.review, key=lambda one: not one.startswith("put "))
        named = [one if len(one) <= _LONGEST else f"{one[:_LONGEST]}..." for one in found[:_NAMED]]
        more = [f"and {len(found) - _NAMED} more"] if len(found) > _NAMED else []
        return "; ".join([*named, *more])


class ItemRun:
    """An item that was begun, as its scripts find it."""

    def __init__(self, step: Step, opened: Opened | None = None) -> None:
        self.step = step
        self.settings = step.settings
        self.item = opened or step.item
        self.branch = step.branch
        self.place = step.place
        self.repository = step.branch.repository

    @cached_property
    def origin(self) -> Origin:
        """What its tree began with."""
        return self.place.known()

    @cached_property
    def documents(self) -> Stored:
        """The documents of the loop, as the branch has them now."""
        return self.step.documents_at(self.branch.tip)

    @property
    def mark(self) -> str:
        """The name of the item in records and commits: the same in every step of its agent."""
        return f"{self.step.id}/{self.item.slot}"

    @property
    def attempts(self) -> int:
        """Sessions that it may take."""
        return self.item.attempts or self.settings.attempts

    # What is in its tree

    def take(self, gate: Mapping[str, Any] = {}) -> str:
        """The tree that a check was green with; without one, what is there now."""
        if gate.get("tree") and self.origin.way != "here":
            return str(gate["tree"])
        if self.origin.way != "isolated":
            self.step.end_stragglers(self.item.since)
        with self.place.alone():
            return self.place.harvest().tree

    def look(self, gate: Mapping[str, Any] = {}) -> Work:
        """What was done, and what about it a person has to see."""
        tree = self.take(gate)
        changes = self.repository.changes(self.origin.tree, tree)
        may = rules.matcher(self.item.may)
        texts = reasons.texts_of(self.repository, changes)
        found = Work(
            tree=tree,
            changed=sorted(map(os.fsdecode, changes)),
            review=reasons.reasons_for(self.repository, changes, may, texts),
            conflicts=reasons.conflicts(self.repository, changes, texts),
            subjects=self.step.subjects(self.origin),
        )
        left = harvest.left(self.place.slot)
        if left != tree:
            self._look_at_documents(left, found)
        return found

    def on_tip(self, tree: str) -> str | None:
        """The tree on top of what else was committed meanwhile; None when that conflicts with it."""
        if self.branch.tip == self.origin.commit:
            return tree
        others = self.repository.changes(self.origin.tree, self.branch.tree_of(TIP))
        if all(self.documents.owns(os.fsdecode(path)) for path in others):
            return tree
        return self.branch.merged(tree, self.origin.commit) or None

    def save(self, tree: str, attempt: int, what: str = "") -> tuple[str, str]:
        """Keep what did not count: the reference, and the commit it names; both empty if nothing was changed."""
        left = harvest.left(self.place.slot) if self.origin.kept else tree
        if left == self.origin.tree:
            return "", ""
        name = f"{self.item.slot}.{what or attempt}"
        title = foreign_text.one_line(self.item.title)
        made = self.branch.keep(name, left, f"raymond: {title}\n\n{what or f'attempt {attempt}'}\n", self.origin.commit)
        return self.branch.reference(name), made

    # What an agent did to the documents

    def _look_at_documents(self, left: str, found: Work) -> None:
        before, after = self.step.documents_at(self.origin.tree), self.step.documents_at(left)
        newest = os.path.join(LOGS, before.newest() or "-")
        for raw, (old, new) in self.repository.changes(self.origin.tree, left, self.origin.kept).items():
            name = os.path.relpath(os.fsdecode(raw), before.inside)
            path = before.shown(name)
            if name == newest:
                self._compare(before.read(name), after.beginning(name), path, found)
            elif os.path.dirname(name) == LOGS and not old:
                found.notes.append(f"wrote a session log of its own, {path}")
                said = records.sections_of(after.beginning(name)[:_TOLD])
                found.proposed += records.proposals(said.pop(queue.TITLE, ""))
                found.told |= said
            elif before.is_plan(os.fsdecode(raw)):
                self.save(found.tree, 0, DOCUMENTS)
                noticed, proposed = reasons.plan_changes(before.read(name), after.beginning(name), self.item.key, path)
                found.notes += noticed
                found.proposed += proposed
            elif name == PROGRESS and after.beginning(name).startswith(before.read(name)):
                self._take_progress(before.read(name), after.beginning(name), found)
            else:
                verb = "changed" if old and new else "made" if new else "removed"
                found.notes.append(f"{verb} {path}, which Raymond writes")

    def _take_progress(self, old: str, new: str, found: Work) -> None:
        """What an agent added to the progress is told in its session log."""
        added = foreign_text.prose(new[len(old) : len(old) + _TOLD], 1).strip()
        found.told.setdefault("Implementation Details", added)

    def _compare(self, old: str, new: str, path: str, found: Work) -> None:
        """What became of the queue while a turn ran: it counts for no item of now."""
        before = {queue.key(one): one for one in queue.read(old).items}
        now = {queue.key(one): one for one in queue.read(new).items}
        for key, one in now.items():
            if key not in before:
                found.proposed.append(one.raw if one.proposed else queue.marked(one.raw, records.PROPOSED))
                found.notes.append(_ADDED.format(title=one.title, path=path))
        for key, one in before.items():
            there = now.get(key)
            if key == self.item.key:
                if there and (there.verification, there.metadata) != (one.verification, one.metadata):
                    found.notes.append(f"changed the check of its own item in {path}, which does not count")
            elif there is None:
                found.notes.append(f'removed "{one.title}" from {path}, which does not count')
            elif _kept(there) != _kept(one):
                found.notes.append(f'changed "{one.title}" in {path}, which does not count')

    def queue_before(self) -> list[Item]:
        """The queue that the item was taken from, as it is on the branch."""
        name = self.item.source or self.documents.newest()
        return list(queue.read(self.documents.read(LOGS, name)).items) if name else []

    def new(self, blocks: Iterable[str]) -> list[str]:
        """The raw items that an agent proposes and that are new, each once."""
        known = {self.item.key, *(queue.key(one) for one in self.queue_before())}
        found: dict[str, str] = {}
        for block in blocks:
            for one in queue.read(f"## {queue.TITLE}\n\n{block}").items:
                if queue.key(one) not in known:
                    found.setdefault(queue.key(one), reasons.cleaned(one.raw))
        return list(found.values())


def _kept(item: Item) -> tuple[object, ...]:
    return item.verification, item.metadata, item.priority, item.ticked


def explain(note: str) -> str:
    """A note as a sentence: what it does not say is that the agent did it."""
    return note if note.startswith('"') else f"the agent {note}"
