"""The stories of a PRD as the source of a loop."""

from datetime import UTC, datetime
from errno import EINVAL
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from raymond.loops import specs, story_items, task_items
from raymond.loops.documents import PRD, PRD_STATUS, Documents
from raymond.loops.formats import foreign_text, prd, prd_status
from raymond.loops.formats.prd_status import Result
from raymond.loops.formats.queue_item import Doubt, Item
from raymond.loops.formats.state_file import Broken
from raymond.loops.ledger import OWN_CHECK, PENDING, PLANNED, UNCHECKED, Entry, Ledger
from raymond.loops.selection import Passed, select
from raymond.loops.settings import Settings
from raymond.loops.source import Looked
from raymond.loops.specs import Specs
from raymond.loops.story_items import Linked

if TYPE_CHECKING:
    from raymond.loops.item_run import ItemRun

_UNJUDGED = "a person has to judge it"
"""What the history says of a story that was worked on."""


class Unreadable(OSError):
    """A document cannot be read, so nothing is written over it: a person is asked to repair it."""

    lasts = True


class StorySource(Struct, frozen=True):
    """The stories that do not pass."""

    documents: Documents
    settings: Settings

    def look(self, ledger: Ledger) -> Looked:
        """The stories that do not pass, with their tasks, and what of it can be worked on."""
        known, read = specs.read(self.documents), prd.read(self.documents.read(PRD))
        try:
            status = self._status()
        except Broken as error:
            why = f"repair {self.documents.shown(PRD_STATUS)}: {error}"
            return Looked(self.documents.newest(), select((), ledger, self.settings), trouble=why)
        items: list[Item] = []
        passed: list[Passed] = []
        closed = ledger.closed()
        for linked in self.failing(known, read.stories, status):
            ready, others = story_items.items_of(linked, known, self.settings, closed)
            items += ready
            passed += others
        chosen = select(items, ledger, self.settings)
        chosen = replace(chosen, passed=[*chosen.passed, *(one for one in passed if one.item.id not in closed)])
        doubts = [Doubt(one.message, one.line, PRD) for one in read.doubts]
        return Looked(self.documents.newest(), chosen, (*doubts, *known.doubts))

    def settled(self) -> str:
        """That every story within the scope passes."""
        stories = prd.read(self.documents.read(PRD)).stories
        if not stories or self.failing(specs.read(self.documents), stories, self.status()):
            return ""
        return f"{self.settings.story or 'every story'} passes already"

    def status(self) -> dict[str, Any]:
        """What docs/prd-status.json says; empty when it cannot be read."""
        try:
            return self._status()
        except Broken:
            return prd_status.empty(self.documents.shown(PRD))

    def _status(self) -> dict[str, Any]:
        return prd_status.read(self.documents.read(PRD_STATUS) or "{}")

    def failing(self, known: Specs, stories: tuple[Any, ...], status: dict[str, Any]) -> list[Linked]:
        """The stories within the scope that do not pass, in the order in which they are taken."""
        entries = {one["id"]: one for one in prd_status.merged(status, stories)["stories"]}
        ids, passing = {one.id for one in stories}, {id for id, one in entries.items() if one.get("passes") is True}
        found = []
        for story in sorted(stories, key=lambda one: one.priority):
            if story.id in passing or self.settings.story not in ("", story.id):
                continue
            entry = entries.get(story.id, {})
            before = tuple(
                id if id in ids else f"{id} (not in the PRD)" for id in story.depends_on if id not in passing
            )
            last = (entry.get("history") or [{}])[-1]
            is_pending = (last.get("result"), last.get("notes")) == ("pending", _UNJUDGED)
            found.append(Linked(story, self.names(story.id, entry, known), before, is_pending))
        return found

    def names(self, id: str, entry: dict[str, Any], known: Specs) -> tuple[str, ...]:
        """The tasks that a story takes: those of the status file, and those that say so themselves."""
        return tuple(dict.fromkeys([*(entry.get("implementedBy") or ()), *known.implementing.get(id, ())]))

    def doubts_of(self, looked: Looked, item: Item) -> list[Doubt]:
        """Nothing: what is odd about a story was said at the start."""
        return []

    def done(self, work: "ItemRun", entry: Entry) -> None:
        """Mark it in the status file, and its tasks in their specs."""
        if entry.verdict == PLANNED:
            return
        if entry.verdict in (UNCHECKED, PENDING):
            task_items.write_completed(work, work.item.tasks)
        else:
            task_items.write_passed(work, work.item.tasks, by_person=bool(work.item.criteria))
        if work.item.key == work.item.group:
            own = "own check: " if entry.verdict == OWN_CHECK else ""
            result: Result = "pending" if entry.verdict in (UNCHECKED, PENDING) else "passed"
            how = _UNJUDGED if result == "pending" else work.item.check or "a person says so"
            self._record(work, result, f"{own}{how}")

    def failed(self, work: "ItemRun", *, verdict: str, action: str, error: str, attempt: int) -> str:
        """The same for one that does not count."""
        if work.item.key != work.item.group:
            return task_items.write_failed(
                work, work.item.key, verdict=verdict, action=action, error=error, attempt=attempt
            )
        self._record(work, "failed", f"{verdict}: {error.partition(chr(10))[0]}")
        return ""

    def _record(self, work: "ItemRun", result: Result, notes: str) -> None:
        stories = prd.read(self.documents.read(PRD)).stories
        date = f"{datetime.fromtimestamp(work.item.began, UTC):%Y-%m-%dT%H:%M:%SZ}"  # the same when it is repeated
        try:
            status = prd_status.merged(self._status(), stories, date=date)
        except Broken as error:
            raise Unreadable(EINVAL, str(error), self.documents.shown(PRD_STATUS)) from None
        if prd_status.story(status, work.item.key) is not None:
            status = prd_status.recorded(status, work.item.key, result, date, foreign_text.cut(notes, 200))
        work.documents.write(prd_status.write(status), PRD_STATUS)
