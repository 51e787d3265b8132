"""Work: one item of a loop while an agent is at it, and what is written when it ends."""

import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from time import time
from typing import Any

from msgspec.structs import replace

from raymond import durations
from raymond.loops import commit_message, documents, doubts, inspection
from raymond.loops.baseline import RESUMED, Baseline, Keeper, keeper_of
from raymond.loops.documents import FAILURES, LOGS, PROGRESS, WRITTEN
from raymond.loops.formats import foreign_text, queue, records, session_log
from raymond.loops.formats.item import Item
from raymond.loops.inspection import Inspection, Inspector
from raymond.loops.ledger import FAILED, RED, Entry
from raymond.loops.repository import SAVED
from raymond.loops.saved import Saved
from raymond.loops.settings import SESSION
from raymond.loops.step import Step

_MOST_PATHS = 50
_EXCERPT = 4000
"""Characters of an error that are told with an item."""


class Work:
    """The item of an agent, as its fork describes it."""

    def __init__(self, step: Step, given: Mapping[str, str] | None = None) -> None:
        """`given` are the variables of its fork, for whoever is not that agent."""
        value = step.variable if given is None else lambda name: given.get(name, "")
        self.step = step
        self.settings = step.settings
        self.slot = value("slot")
        """Which of all items of the run this is, counted with every try."""
        self._which = "" if given is None else f"-{self.slot}"
        """Tells items apart whose records are written by the same agent."""
        self.number = int(value("iteration") or 1)
        self.title = value("title")
        self.key = value("key") or queue.key_of(self.title)
        self.raw = value("item")
        self.details = value("details")
        self.check = value("check")
        self.checks = value("checks")
        self.place = value("place")
        """The document that it comes from, relative to the folder of documents; empty for a session log."""
        self.tasks = tuple(value("tasks").split())
        """The tasks that are done when it is."""
        self.group = value("group")
        """The story that it belongs to."""
        self.criteria = tuple(filter(None, value("criteria").split("\n")))
        """What a person judges it by."""
        self.timeout = durations.parse(value("check_timeout")) or 0.0
        self.on_fail = value("on_fail") or step.settings.on_fail
        self.attempts = int(value("attempts") or step.settings.attempts)
        self.attempts_made = 1
        self.log = value("log")
        """The name of the session log that this session writes."""
        self.source = value("source")
        """The name of the one that its queue comes from."""
        self.began = float(value("began") or 0.0)
        self.failures = int(value("failures") or 0)
        """How often it has failed before, in a row."""
        self._since = int(value("since") or 0)
        """The step in which its baseline was taken: those that follow are its own."""
        self.footprint = value("footprint")
        """Of the repository, where nothing is committed."""
        self.is_proposed = value("proposed") == "yes"
        self.is_plan = value("plan") == "yes"
        """Whether an agent says which tasks it takes, instead of doing it."""
        self._digest = value("baseline")
        self.start = value("start")
        """A commit of all files as they were when the loop began."""

    @cached_property
    def keeper(self) -> Keeper:
        """Keeps the baseline of the item."""
        return keeper_of(self.step, self.slot)

    @cached_property
    def baseline(self) -> Baseline:
        """How everything stood when the item began."""
        return self.keeper.load(documents.read(self.step.file(f"{RESUMED}-{self.slot}")) or self._digest)

    @cached_property
    def saved(self) -> Saved:
        """Keeps what did not count."""
        path = self.step.file(f"saved-{self.slot}")
        return Saved(path, self.step.repository, f"{SAVED}{self.step.id}/", self.step.key)

    def inspect(self, is_checked: Callable[[], bool] = lambda: True) -> Inspection:
        """What the agent did besides its work; documents are as they were afterwards."""
        self.end_stragglers()
        path = self.step.file(f"found-{self.slot}")
        inspector = Inspector(self.step.repository, self.step.documents, path, self._written(), self.step.key)
        return inspector.look(self.baseline, self.key, is_checked, self.keep_documents)

    def keep_documents(self, found: Inspection) -> None:
        """Keep the documents of the loop as the agent left them, each version once: they are put back."""
        base, number = f"refs/raymond/{self.step.id}/{self.slot}.documents", 1
        name, noted = base, self.saved.noted()
        while there := noted.get(name):
            changed = self.step.repository.changes(there, found.left)
            if not any(self.step.documents.owns(one.path) for one in changed):
                if not self.step.repository.reference(name):  # it was killed before it was made
                    self.saved.keep(name, there)
                return
            number += 1
            name = f"{base}-{number}"
        self._keep(name, found, "documents as the agent left them")

    def end_stragglers(self) -> None:
        """End what the agent left running."""
        self.step.end_stragglers(self._since)

    # What becomes of its changes

    def save(self, found: Inspection, attempt: int) -> tuple[str, str]:
        """Keep everything as the agent left it, its own commits included; the reference, and the commit it names.

        Both are empty if an item that needs no review left nothing.
        """
        if not found.verdict and not found.commits and not self.step.repository.changes(self.baseline.work, found.left):
            return "", ""
        return self._keep(f"refs/raymond/{self.step.id}/{self.slot}.{attempt}", found, f"attempt {attempt}")

    def show(self, tree: str) -> str:
        """Keep all files as a person is to see them; the reference."""
        name = f"refs/raymond/{self.step.id}/{self.slot}.judged"
        kept = self.step.repository.commit(tree, [self.baseline.work], "raymond: judged\n", f"{int(self.began)} +0000")
        self.saved.keep(name, kept)
        return name

    def save_interrupted(self, found: Inspection) -> str:
        """Keep what an agent left that was interrupted and does not go on; the reference, empty if it left nothing."""
        repository = self.step.repository
        if not found.commits and not repository.changes(self.baseline.work, found.left):
            return ""
        base, number = f"refs/raymond/{self.step.id}/{self.slot}.interrupted", 1
        name, tree = base, repository.reference(f"{found.left}^{{tree}}")
        while repository.reference(name) and repository.reference(f"{name}^{{tree}}") != tree:
            number += 1  # it was interrupted before
            name = f"{base}-{number}"
        return self._keep(name, found, "interrupted")[0]

    def _keep(self, name: str, found: Inspection, what: str) -> tuple[str, str]:
        message = f"raymond: {commit_message.subject(self.title)}\n\n{what}\n"
        there = self.saved.noted().get(name)
        if there:  # repeated after a kill: what is in the tree now is not what was saved
            return name, there
        kept = self.step.repository.commit(found.left, [found.head], message, f"{int(self.began)} +0000")
        self.saved.keep(name, kept)
        return name, kept

    def go_back(self, found: Inspection) -> None:
        """Return to the base, except for the documents of the loop; what was there is saved."""
        repository, before = self.step.repository, self.baseline
        if repository.branch() != before.branch and before.branch:
            repository.switch(before.branch)
        if before.head and repository.head() != before.head:
            name = f"refs/heads/{before.branch}" if before.branch else "HEAD"
            repository.move(name, before.head)
        changed = repository.changed_since(before.work)
        ours = [one for one in changed if not self.step.documents.owns(one) and one not in found.hidden]
        repository.bring_back(before.work, ours)
        repository.refresh(before.staged, before.head)
        found.tree = repository.tree()

    # What is written about it

    def log_path(self) -> str:
        """The session log, as people are told it; empty where there is none."""
        return self.step.documents.shown(LOGS, self.log) if self.log else ""

    def queue_before(self) -> list[Item]:
        """The queue as it was when the item began."""
        path = self.step.documents.path(LOGS, self.source)
        return list(queue.read(documents.read(path)).items) if self.source else []

    def new(self, blocks: Iterable[str]) -> list[str]:
        """The raw items that an agent proposes and nobody knows yet, each once."""
        known = {self.key, *(queue.key(one) for one in self.queue_before())}
        found: dict[str, str] = {}
        for block in blocks:
            for one in queue.read(f"## {queue.TITLE}\n\n{block}").items:
                if queue.key(one) not in known:
                    found.setdefault(queue.key(one), doubts.cleaned(one.raw))
        return list(found.values())

    def write_log(self, told: dict[str, str], blocks: Iterable[str], found: Inspection, ended: str) -> None:
        """Write the session log; `blocks` is the queue that is left, which stays as a person wrote it."""
        areas = "\n".join(f"- {foreign_text.code(path)}" for path in found.changed[:_MOST_PATHS])
        notes = "\n".join(f"- Raymond noticed that {inspection.told(note)}" for note in found.noticed(ended))
        sections = {"Session Goals": f"{self.title}\n\n{self.details}", "Code Areas Touched": areas}
        sections |= {**found.told, **told}
        sections["Summary"] = "\n\n".join(one for one in (ended, sections.get("Summary", ""), notes) if one)
        sections = {heading: doubts.cleaned(text) for heading, text in sections.items()}
        whole = session_log.SessionLog(doubts.cleaned(self.title), sections, tuple(blocks))
        self.write_document(session_log.compose(self._with_others(whole)), LOGS, self.log)

    def _with_others(self, log: session_log.SessionLog) -> session_log.SessionLog:
        """The log with what items before this one have written into it, where there is one for all of them."""
        if self.settings.loop == SESSION or self.settings.log_per_task:
            return log
        name = os.path.join(self.step.documents.inside, LOGS, self.log)
        before = (self.step.repository.file(self.baseline.work, name) or b"").decode("utf-8", "surrogateescape")
        return session_log.joined(before, log, f"{self.settings.loop} {self.step.id}")

    def write_progress(self, done: str, result: str) -> None:
        """Add the session to docs/progress.md, once."""
        entry = records.Progress(
            when=_when(),
            session=self.number,
            sessions=self.settings.most,
            done=done,
            command=self.check,
            result=result,
            log=os.path.join(LOGS, self.log),
            loop=self.settings.loop.replace("-", " ").title(),
        )
        self._record(PROGRESS, records.progress(entry), records.PROGRESS)

    def write_failure(self, output: str, action: str, state: str) -> None:
        """Add the failure to docs/failures.md, once."""
        entry = records.Failure(self.number, _when(), self.title, self.check or "none", output, action, state)
        self._record(FAILURES, records.failure(entry), records.FAILURES)

    def _record(self, name: str, entry: str, heading: str) -> None:
        before = documents.read(self.step.documents.path(name))
        self.write_document(records.add(before, self.mark, doubts.cleaned(entry), heading), name)

    @property
    def rejection(self) -> str:
        """The file that keeps what a hook printed when it rejected the work."""
        return self.step.file(f"rejected-{self.slot}")

    @property
    def mark(self) -> str:
        """The name of the item in records and commits: the same in every step of its agent."""
        return f"{self.step.id}/{self.step.key.rpartition('-')[0]}{self._which}"

    def write_document(self, text: str, *names: str) -> None:
        """Write a document, once it is noted that it is ours: after a kill it must not be taken for the agent's."""
        path = self.step.documents.path(*names)
        documents.note(self._noted, os.path.join(self.step.documents.inside, *names), text)
        documents.write(path, text)

    @property
    def has_written(self) -> bool:
        """Whether records of it are written, at least in part."""
        return os.path.exists(self._noted)

    @property
    def _noted(self) -> str:
        return self.step.file(f"written-{self.slot}")

    def _written(self) -> dict[str, str]:
        return {**documents.noted(self.step.file(WRITTEN)), **documents.noted(self._noted)}

    def entry(self, verdict: str, found: Inspection, **more: Any) -> Entry:
        """How it ended, for the ledger."""
        entry = Entry(
            number=self.number,
            key=self.key,
            title=self.title if self.log else f"Iteration {self.number}: {self.title}",
            verdict=verdict,
            check=self.check,
            timeout=self.timeout if self.timeout != self.settings.gate_timeout else 0.0,
            log=self.log_path(),
            began=self.began,
            seconds=round(time() - self.began, 3) if self.began else 0.0,
            notes=tuple(found.noticed(more.get("error", ""))),
            agent=self.step.agent,
            base=self.baseline.head if self._digest else "",
            checks=self.checks if self.checks != self.check else "",
            place=self.place,
            tasks=self.tasks,
            group=self.group,
        )
        return replace(entry, **more)

    def paused(self, why: str) -> Entry:
        """How it ended when it was checked and does not fit HEAD any more: its records go, a person decides."""
        repository = self.step.repository
        base = repository.reference(f"refs/raymond/{self.step.id}/base")
        changed = [one.path for one in repository.changes(base, repository.tree())]
        repository.bring_back(base, [one for one in changed if self.step.documents.owns(one)])
        # Of the plain loop, every iteration counts for itself: this one must not make the loop fail.
        verdict = FAILED if self.log else RED
        return self.entry(verdict, Inspection(), error=f"the work is in the tree, but {why}", action="pause", log="")

    def excerpt(self, text: str) -> str:
        """What is wrong, which is its first line, and the end of the output, short enough to be told."""
        first, _, rest = text.strip().partition("\n")
        if len(first) + len(rest) < _EXCERPT:
            return text.strip()
        first = foreign_text.cut(first, _EXCERPT // 2)
        end = rest[-(_EXCERPT - len(first)) :].split(None, 1)
        return f"{first}\n... {end[-1]}" if end else first


def _when() -> datetime:
    return datetime.now(UTC).astimezone()
