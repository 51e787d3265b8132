"""Which source each loop has, and the one of sessions: the queue of the newest session log."""

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from raymond.loops.documents import LOGS, Documents
from raymond.loops.formats import queue
from raymond.loops.formats.queue import Queue
from raymond.loops.formats.queue_item import Item, PlanWarning
from raymond.loops.ledger import PENDING, UNCHECKED, Entry, Ledger
from raymond.loops.settings import STORIES, TASKS, Settings
from raymond.loops.source import Looked, PassedOver, Selection, Source, select, without_warned

if TYPE_CHECKING:
    from raymond.loops.item_run import ItemRun

_LATE = "tasks were not part of the queue when this loop began, so agents could change them: start another loop"


class SessionSource(Struct, frozen=True):
    """The next steps of a project."""

    documents: Documents
    settings: Settings

    def look(self, ledger: Ledger) -> Looked:
        """The queue of the newest session log, and what of it can be worked on."""
        log, source = self.documents.newest(), self.settings.source
        if not ledger.entries and source and self.documents.exists(LOGS, source):
            log = source
        text = self.documents.read(LOGS, log) if log else ""
        found = queue.read(text) if log else Queue((), (), None)
        chosen = self._select(found, ledger)
        if found.warnings and self.settings.strict:
            chosen = without_warned(chosen, text, found.warnings)
        return Looked(log, chosen, found.warnings, text)

    def _select(self, found: Queue, ledger: Ledger) -> Selection:
        """Items that are done when their tasks are verified get the checks of those."""
        if not any(one.verification.kind == "task-loop" for one in found.items):
            return select(found.items, ledger, self.settings)
        from raymond.loops import (
            spec_files,
            task_source,  # hardly any queue needs them
        )

        known, items, passed_over = spec_files.read_tasks(self.documents), [], []
        for item in found.items:
            linked: Item | str = item
            if item.verification.kind == "task-loop" and not item.ticked:
                linked = _LATE
                if self.settings.links_tasks:
                    linked = task_source.linked(item, item.metadata.tasks, known, self.settings)
            if isinstance(linked, Item):
                items.append(linked)
            else:
                passed_over.append(PassedOver(item, linked))
        chosen = select(items, ledger, self.settings)
        return replace(chosen, passed_over=[*chosen.passed_over, *passed_over])

    def settled(self) -> str:
        """Nothing: the queue says what is done."""
        return ""

    def warnings_of(self, looked: Looked, item: Item) -> list[PlanWarning]:
        """What is odd about the lines of an item."""
        return queue.warnings_of(item, looked.text, looked.warnings)

    def done(self, work: "ItemRun", entry: Entry) -> None:
        """Its tasks are verified, unless nobody has judged them; the item leaves the queue with its session log."""
        if not work.item.tasks:
            return
        from raymond.loops import task_source

        if entry.verdict in (UNCHECKED, PENDING):
            task_source.write_unjudged(work, work.item.tasks)
        else:
            task_source.write_passed(work, work.item.tasks, by_person=bool(work.item.criteria))

    def failed(self, work: "ItemRun", *, verdict: str, action: str, error: str, attempt: int) -> str:
        """Nothing: the queue in the log of its session says so."""
        return ""


def source_of(documents: Documents, settings: Settings) -> Source:
    """The source of a loop."""
    if settings.loop == TASKS:
        from raymond.loops.task_source import TaskSource

        return TaskSource(documents, settings)
    if settings.loop == STORIES:
        from raymond.loops.story_source import StorySource

        return StorySource(documents, settings)
    return SessionSource(documents, settings)
