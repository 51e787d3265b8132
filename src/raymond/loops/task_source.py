"""The tasks of implementation specs as the source of a loop."""

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from raymond.loops import specs, task_items
from raymond.loops.documents import LOGS, Documents
from raymond.loops.formats import item_ids
from raymond.loops.formats.queue_item import Doubt, Item
from raymond.loops.ledger import DONE, PENDING, UNCHECKED, Entry, Ledger
from raymond.loops.selection import Passed, proposed_in, select
from raymond.loops.settings import Settings
from raymond.loops.source import Looked
from raymond.loops.specs import Placed, Specs

if TYPE_CHECKING:
    from raymond.loops.item_run import ItemRun


class TaskSource(Struct, frozen=True):
    """The tasks that are within the scope of a loop."""

    documents: Documents
    settings: Settings

    def look(self, ledger: Ledger) -> Looked:
        """The tasks that are not verified, and which of them can be worked on."""
        known = specs.read(self.documents)
        items, passed = [], []
        for placed in known.tasks.values():
            if not self.has(placed.task.id) or not task_items.is_open(placed.task):
                continue
            item = task_items.item_of(placed, self.settings)
            why = self._obstacle(item, placed, known)
            if why and item.verification.kind != "blocked":
                passed.append(Passed(item, why))
            else:
                items.append(item)
        chosen = select(items, ledger, self.settings)
        log = self.documents.newest()
        proposed = proposed_in(self.documents.read(LOGS, log)) if log else []
        chosen = replace(chosen, passed=[*chosen.passed, *_not_closed(passed, ledger), *proposed])
        return Looked(log, chosen, known.doubts)

    def settled(self) -> str:
        """That every task within the scope is verified."""
        tasks = [one.task for id, one in specs.read(self.documents).tasks.items() if self.has(id)]
        if not tasks or any(task_items.is_open(one) for one in tasks):
            return ""
        if self.settings.task == tasks[0].id:
            return f"{tasks[0].id} is verified already"
        scope = self.settings.task or self.settings.task_group or self.settings.area
        return f"every task{f' of {scope}' if scope else ''} is verified already"

    def has(self, id: str) -> bool:
        """Whether a task is within the scope."""
        scope = self.settings.task or self.settings.task_group or self.settings.area
        return not scope or item_ids.belongs(id, scope)

    def _obstacle(self, item: Item, placed: Placed, known: Specs) -> str:
        return task_items.twice_of([placed], known) or task_items.obstacle(item, placed.task, self.settings)

    def doubts_of(self, looked: Looked, item: Item) -> list[Doubt]:
        """What is odd about the lines of a task."""
        there = specs.read(self.documents).tasks.get(item.id)
        if there is None:
            return []
        first = there.task.line
        last = first + there.task.body.count("\n") + 1
        return [one for one in looked.doubts if one.place == item.place and first <= one.line <= last]

    def done(self, work: "ItemRun", entry: Entry) -> None:
        """Mark it in its spec."""
        if entry.verdict in (UNCHECKED, PENDING):
            task_items.write_completed(work, work.item.tasks)
        elif entry.verdict in DONE:
            task_items.write_passed(work, work.item.tasks, by_person=bool(work.item.criteria))

    def failed(self, work: "ItemRun", *, verdict: str, action: str, error: str, attempt: int) -> str:
        """The same for one that does not count; the fix task that was made for it."""
        return task_items.write_failed(
            work, work.item.key, verdict=verdict, action=action, error=error, attempt=attempt
        )


def _not_closed(passed: list[Passed], ledger: Ledger) -> list[Passed]:
    """Those that the loop itself has not dealt with."""
    closed = ledger.closed()
    return [one for one in passed if one.item.id not in closed]
