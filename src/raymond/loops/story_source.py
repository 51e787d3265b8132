"""Stories of a PRD as items of a loop, with the tasks that they take."""

from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from errno import EINVAL
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from raymond.loops import checks, spec_files, task_source
from raymond.loops.documents import PRD, PRD_STATUS, SPECS, Documents
from raymond.loops.formats import foreign_text, prd, prd_status
from raymond.loops.formats.prd import Story, StoryCheck
from raymond.loops.formats.prd_status import Result
from raymond.loops.formats.queue_item import Item, Metadata, PlanWarning, Verification
from raymond.loops.formats.state_file import Broken
from raymond.loops.ledger import OWN_CHECK, PENDING, PLANNED, UNCHECKED, Entry, Ledger
from raymond.loops.settings import Settings
from raymond.loops.source import Looked, PassedOver, select
from raymond.loops.spec_files import Placed, Specs

if TYPE_CHECKING:
    from raymond.loops.item_run import ItemRun

NO_TASKS = (
    "it has no tasks: write **Implemented by:** 1.4.1 under it, or **Implements:** {id} under a task,"
    " or let an agent propose some with --create-tasks"
)
_PROPOSED = (
    "its tasks are proposed by an agent: look at {where}, remove the lines **Proposed:** yes, or --accept-proposed"
)

_UNCHECKED = "{task} has no check, so {id} cannot be verified{how}: give it a **Verification:**{or_else}"

_UNJUDGED = "a person has to judge it"
"""What the history says of a story that was worked on."""


class Linked(Struct, frozen=True):
    """A story, and the names of the tasks that it takes."""

    story: Story
    names: tuple[str, ...]
    waits_for: tuple[str, ...] = ()
    """The stories that have to pass before it."""
    is_pending: bool = False
    """The work was done, and a person has to judge it."""


def items_of(
    linked: Linked, known: Specs, settings: Settings, closed: Collection[str] = ()
) -> tuple[list[Item], list[PassedOver]]:
    """What can be worked on for a story, in order; and what cannot, with the reason.

    Tasks in `closed` are not tried again.
    """
    story = linked.story
    own = _item(story, linked.names, settings)
    found, missing = task_source.tasks_of(linked.names, known)
    if why := _obstacle(linked, own, missing, found, known, settings):
        return [], [PassedOver(own, why)]
    if not found:
        return [_planning(own, story)], []
    left = [one for one in found if task_source.is_open(one.task)]
    if task_source.is_verified_by_tasks(own):  # checks that an agent proposed, also those that were green before
        own = replace(own, proposed=any(one.task.proposed for one in found))
    if left and settings.runs_tasks:
        return _tasks(own, left, known, settings, closed)
    if task_source.is_verified_by_tasks(own):
        checked = task_source.linked(own, linked.names, known, settings)
        return _judged(checked, linked, settings) if isinstance(checked, Item) else ([], [PassedOver(own, checked)])
    sections = [task_source.section(one, settings) for one in left]
    details = task_source.joined([own.details, *sections], f"{settings.docs}/{SPECS}")
    same = tuple(one.task.id for one in left if one.task.check in own.checks)
    return _judged(replace(own, details=details, is_claimed=not left, tasks=same), linked, settings)


def _judged(item: Item, linked: Linked, settings: Settings) -> tuple[list[Item], list[PassedOver]]:
    """What only a person can judge is not worked on again, and waits where nobody can be asked."""
    item = replace(item, is_claimed=item.is_claimed or (linked.is_pending and bool(item.criteria)))
    if item.is_claimed and item.criteria and not settings.asks:
        return [], [PassedOver(item, task_source.MANUAL)]
    return [item], []


def _obstacle(
    linked: Linked, own: Item, missing: list[str], found: list[Placed], known: Specs, settings: Settings
) -> str:
    story = linked.story
    if story.problem:
        return story.problem
    if linked.waits_for:
        return f"{', '.join(linked.waits_for)} {'has' if len(linked.waits_for) == 1 else 'have'} to pass first"
    if missing:
        return f"there is no task {', '.join(missing)}, which implements it"
    if twice := task_source.twice_of(found, known):
        return twice
    if not found and not settings.create_tasks:
        return NO_TASKS.format(id=story.id)
    left = [one for one in found if task_source.is_open(one.task)]
    counts_tasks = task_source.is_verified_by_tasks(own)
    is_manual = own.criteria or ((counts_tasks or settings.runs_tasks) and any(one.task.is_manual for one in left))
    if settings.skip_manual and is_manual:
        return "a person has to judge it (--skip-manual)"
    proposed = [one for one in (found if counts_tasks else left) if one.task.proposed]
    if proposed and not settings.accept_proposed:
        return _PROPOSED.format(where=f"{settings.docs}/{proposed[0].place}")
    blocked = [one.task for one in left if one.task.status == "blocked"]
    if blocked and not settings.runs_tasks:
        return f"task {blocked[0].id} is blocked: {blocked[0].reason or 'the spec says so'}"
    return _unchecked(story, left, counts_tasks=counts_tasks) if settings.runs_tasks else ""


def _unchecked(story: Story, left: list[Placed], *, counts_tasks: bool) -> str:
    """Why a story could not pass once its tasks are done: one of them is never verified."""
    tasks = [one.task for one in left if one.task.status != "blocked" and not one.task.problem]
    bare = next((one.id for one in tasks if not one.check and not one.is_manual), "")
    if not bare:
        return ""
    how, or_else = ("", "") if counts_tasks else (" with --task-loop", ", or leave out --task-loop")
    return _UNCHECKED.format(task=bare, id=story.id, how=how, or_else=or_else)


def _item(story: Story, names: tuple[str, ...], settings: Settings) -> Item:
    check = story.check(has_tasks=bool(names))
    commands = tuple(dict.fromkeys(check.commands()))
    criteria = tuple(dict.fromkeys(_criteria(check, story)))
    kind = (
        Verification("command", checks.in_a_line(commands))
        if commands
        else Verification("manual" if criteria else "none")
    )
    return Item(
        title=task_source.titled(f"{story.id}: {story.title}"),
        verification=Verification("task-loop") if _names_tasks(check) else kind,
        priority=story.priority,
        metadata=Metadata(),
        details=task_source.joined([story.body.strip()], f"{settings.docs}/{PRD}"),
        raw="",
        start=story.start,
        end=story.end,
        id=story.id,
        place=PRD,
        checks=commands,
        criteria=criteria,
        group=story.id,
    )


def _criteria(check: StoryCheck, story: Story) -> Iterator[str]:
    if check.kind == "manual":
        yield from check.criteria or story.criteria or (story.title,)
    for part in check.parts:
        yield from _criteria(part, story)


def _names_tasks(check: StoryCheck) -> bool:
    return check.kind == "tasks" or any(_names_tasks(part) for part in check.parts)


def _planning(own: Item, story: Story) -> Item:
    """An agent is to say which tasks the story takes."""
    return replace(
        own,
        id=f"{story.id} tasks",
        title=f"{own.title} (plan its tasks)",
        verification=Verification(),
        checks=(),
        criteria=(),
        is_plan=True,
    )


def _tasks(
    own: Item, left: list[Placed], known: Specs, settings: Settings, closed: Collection[str]
) -> tuple[list[Item], list[PassedOver]]:
    """The tasks of a story as items of their own; the story is next when none of them is left."""
    ready, passed_over = [], []
    for placed in left:
        item = task_source.item_of(placed, settings, own.id)
        why = task_source.obstacle(item, placed.task, settings)
        if why and item.verification.kind != "blocked":
            passed_over.append(PassedOver(item, why))
        else:
            ready.append(item)
    if all(one.id in closed or one.verification.kind == "blocked" for one in ready):
        names = ", ".join(one.task.id for one in left)
        passed_over.append(PassedOver(own, f"its tasks are not verified: {names}"))
    return ready, passed_over


class Unreadable(OSError):
    """A document cannot be read, so nothing is written over it: a person is asked to repair it."""

    lasts = True


class StorySource(Struct, frozen=True):
    """The stories that do not pass."""

    documents: Documents
    settings: Settings

    def look(self, ledger: Ledger) -> Looked:
        """The stories that do not pass, with their tasks, and what of it can be worked on."""
        known, read = spec_files.read_tasks(self.documents), prd.read(self.documents.read(PRD))
        try:
            status = self._status()
        except Broken as error:
            why = f"repair {self.documents.shown(PRD_STATUS)}: {error}"
            return Looked(self.documents.newest(), select((), ledger, self.settings), trouble=why)
        items: list[Item] = []
        passed_over: list[PassedOver] = []
        closed = ledger.closed()
        for linked in self.failing(known, read.stories, status):
            ready, others = items_of(linked, known, self.settings, closed)
            items += ready
            passed_over += others
        chosen = select(items, ledger, self.settings)
        chosen = replace(
            chosen, passed_over=[*chosen.passed_over, *(one for one in passed_over if one.item.id not in closed)]
        )
        warnings = [PlanWarning(one.message, one.line, PRD) for one in read.warnings]
        return Looked(self.documents.newest(), chosen, (*warnings, *known.warnings))

    def settled(self) -> str:
        """That every story within the scope passes."""
        stories = prd.read(self.documents.read(PRD)).stories
        if not stories or self.failing(spec_files.read_tasks(self.documents), stories, self.status()):
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

    def warnings_of(self, looked: Looked, item: Item) -> list[PlanWarning]:
        """Nothing: what is odd about a story was said at the start."""
        return []

    def done(self, work: "ItemRun", entry: Entry) -> None:
        """Mark it in the status file, and its tasks in their specs."""
        if entry.verdict == PLANNED:
            return
        if entry.verdict in (UNCHECKED, PENDING):
            task_source.write_completed(work, work.item.tasks)
        else:
            task_source.write_passed(work, work.item.tasks, by_person=bool(work.item.criteria))
        if work.item.key == work.item.group:
            own = "own check: " if entry.verdict == OWN_CHECK else ""
            result: Result = "pending" if entry.verdict in (UNCHECKED, PENDING) else "passed"
            how = _UNJUDGED if result == "pending" else work.item.check or "a person says so"
            self._record(work, result, f"{own}{how}")

    def failed(self, work: "ItemRun", *, verdict: str, action: str, error: str, attempt: int) -> str:
        """The same for one that does not count."""
        if work.item.key != work.item.group:
            return task_source.write_failed(
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
