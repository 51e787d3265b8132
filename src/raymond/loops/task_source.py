"""Tasks of implementation specs as items of a loop, and what is written into the spec when one ends."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from raymond.loops import checks as written_checks
from raymond.loops import spec_files
from raymond.loops.documents import LOGS, SPECS, Documents
from raymond.loops.formats import foreign_text, item_ids, task_edit
from raymond.loops.formats.queue_item import Item, Metadata, PlanWarning, Verification
from raymond.loops.formats.task_spec import Task
from raymond.loops.ledger import DONE, PENDING, UNCHECKED, Entry, Ledger
from raymond.loops.settings import Settings
from raymond.loops.source import Looked, PassedOver, proposed_in, select
from raymond.loops.spec_files import Placed, Specs

if TYPE_CHECKING:
    from raymond.loops.item_run import ItemRun

_SHOWN = 60_000
"""Characters of a task that its agent is given; the rest is in the file."""
_ALL = 100_000
"""Characters of all that an agent is given about an item, if they are plain; `_SHOWN` otherwise."""
_TITLE = 300
MANUAL = "it waits for a person's judgement: start the loop on a terminal"
_COMPLETE = "it is complete, and has no check that could verify it"


def item_of(placed: Placed, settings: Settings, group: str = "") -> Item:
    """A task as an item."""
    task = placed.task
    kind: Verification = _verification(task)
    return Item(
        title=titled(f"{task.id}. {task.title}"),
        verification=kind,
        priority=1,
        metadata=Metadata(retries=task.retries, seal=task.seal, may=task.may),
        details=_body(placed, settings),
        raw="",
        start=task.start,
        end=task.end,
        proposed=task.proposed,
        id=task.id,
        place=placed.place,
        checks=(task.check,) if task.check else (),
        criteria=_criteria(task),
        tasks=(task.id,),
        group=group,
        is_claimed=task.status == "complete",
    )


def titled(title: str) -> str:
    """A title that can be handed on."""
    return title if len(title) <= _TITLE else foreign_text.cut(title, _TITLE)


def joined(parts: Iterable[str], where: str) -> str:
    """All that an agent is given about an item; `where` the rest is, if that is too long to be handed on."""
    text = "\n\n".join(filter(None, parts))
    most = _ALL if text.isascii() else _SHOWN
    return text if len(text) <= most else f"{text[:most]}\n\n(The rest is in {where}.)"


def _verification(task: Task) -> Verification:
    if task.status == "blocked":
        return Verification("blocked", task.check.run if task.check else "", task.reason or "the spec says so")
    if task.check:
        return Verification("command", task.check.run)
    return Verification("manual") if task.is_manual else Verification()


def _criteria(task: Task) -> tuple[str, ...]:
    return (task.criteria or (task.title,)) if task.is_manual else ()


def _body(placed: Placed, settings: Settings) -> str:
    body = placed.task.body.strip()
    if len(body) <= _SHOWN:
        return body
    return f"{body[:_SHOWN]}\n\n(The rest is in {settings.docs}/{placed.place}.)"


def is_open(task: Task) -> bool:
    """Whether there is something to do about it: it is not complete, or nobody has verified it."""
    return task.status != "complete" or not task.verified


def obstacle(item: Item, task: Task, settings: Settings) -> str:
    """Why a task cannot be taken; empty when it can."""
    if task.problem:
        return task.problem
    if not item.checks and settings.skip_unverifiable:
        return "it has no command that could verify it (--skip-unverifiable)"
    if item.is_claimed and not item.checks:
        return "" if item.criteria and settings.asks else MANUAL if item.criteria else _COMPLETE
    return ""


def is_verified_by_tasks(item: Item) -> bool:
    """Whether the tasks of an item are a part of its check."""
    return item.verification.kind == "task-loop"


def linked(item: Item, names: Iterable[str], known: Specs, settings: Settings) -> Item | str:
    """An item that is done when these tasks are verified: with their checks; or why it cannot be taken."""
    found, missing = tasks_of(names, known)
    if missing:
        return f"there is no task {', '.join(missing)}"
    if not found:
        return "it names no tasks"
    if twice := twice_of(found, known):
        return twice
    left = [one for one in found if is_open(one.task)]
    for one in left:
        if one.task.problem:
            return f"task {one.task.id}: {one.task.problem}"
        if one.task.status == "blocked":
            return f"task {one.task.id} is blocked: {one.task.reason or 'the spec says so'}"
        if one.task.proposed and not settings.accept_proposed:
            return f"task {one.task.id} is proposed by an agent: --accept-proposed runs it"
        if not one.task.check and not one.task.is_manual:
            return f"task {one.task.id} has no check, so nothing shows that it is done"
    checks = tuple(dict.fromkeys([*item.checks, *(one.task.check for one in found if one.task.check)]))
    told = written_checks.in_a_line(checks)
    return replace(
        item,
        verification=Verification("command", told) if checks else Verification("manual"),
        checks=checks,
        criteria=(*item.criteria, *(line for one in left for line in _criteria(one.task))),
        tasks=tuple(one.task.id for one in left),
        details=joined([item.details, *(section(one, settings) for one in left)], f"{settings.docs}/{SPECS}"),
        proposed=item.proposed or any(one.task.proposed for one in left),
        is_claimed=not left,
    )


def twice_of(found: Iterable[Placed], known: Specs) -> str:
    """Which of these tasks another one has the id of, and where both are; empty when there is none."""
    twice = next((one.task.id for one in found if one.task.id in known.twice), "")
    return f"there are two tasks {twice}: {' and '.join(known.twice[twice])}" if twice else ""


def section(placed: Placed, settings: Settings) -> str:
    """A task as a part of the text that an agent is given."""
    return f"## Task {placed.task.id}. {placed.task.title}\n\n{_body(placed, settings)}"


def tasks_of(names: Iterable[str], known: Specs) -> tuple[list[Placed], list[str]]:
    """The tasks that these names stand for, each once, and the names that stand for none."""
    found: dict[str, Placed] = {}
    missing = []
    for name in names:
        there = known.in_group(name)
        found |= {one.task.id: one for one in there}
        missing += [] if there else [name]
    return list(found.values()), missing


# What is written into the specs


def write_passed(work: "ItemRun", ids: Iterable[str], *, by_person: bool = False) -> None:
    """Mark tasks as complete and verified, and what they repair: that has the same check."""
    known = _specs(work)
    for id in ids:
        if id not in known.tasks:
            continue
        for one in (known.tasks[id], *repaired(known.in_group(item_ids.repaired(id)), id)):
            command = one.task.check.run if one.task.check else "manual" if by_person else "no check"
            _edit(work, one.place, task_edit.passed, one.task.id, _today(), command)


def repaired(known: Iterable[Placed], id: str) -> list[Placed]:
    """The tasks that a fix task repairs: the one it was made for, and fixes before it that have the same check."""
    base = item_ids.repaired(id)
    family = [one for one in known if item_ids.repaired(one.task.id) == base]
    own = next((one.task.check for one in family if one.task.id == id), None)
    if base == id or own is None:
        return []
    return [one for one in family if one.task.id != id and is_open(one.task) and one.task.check == own]


def write_completed(work: "ItemRun", ids: Iterable[str]) -> None:
    """Mark tasks as complete that nobody has verified."""
    known = _specs(work)
    for id in ids:
        if id in known.tasks:
            placed = known.tasks[id]
            why = task_edit.UNJUDGED if placed.task.is_manual else task_edit.NO_CHECK
            _edit(work, placed.place, task_edit.completed, id, why)


def write_unjudged(work: "ItemRun", ids: Iterable[str]) -> None:
    """Mark tasks as complete: those that a check decides about are verified, the others wait for a person."""
    known, waiting = _specs(work), []
    for id in ids:
        task = known.tasks[id].task if id in known.tasks else None
        if task and task.check and not task.is_manual:
            write_passed(work, [id])
        else:
            waiting.append(id)
    write_completed(work, waiting)


def write_failed(work: "ItemRun", id: str, *, verdict: str, action: str, error: str, attempt: int) -> str:
    """Mark a task as not verified, with what is known about it; the fix task that was made, in words."""
    known = _specs(work)
    if id not in known.tasks:
        return ""
    placed = known.tasks[id]
    reason, _, output = error.partition("\n")
    command = placed.task.check.run if placed.task.check else ""
    when, why = _now(), foreign_text.cut(f"{verdict}: {reason}", 300)
    made = [""]

    def edit(text: str) -> str:
        text = task_edit.failed(text, id, when, command, why, output, attempt)
        if action == "block":
            return task_edit.blocked(
                text, id, foreign_text.cut(f"failed {work.item.failures + 1} times: {reason}", 120)
            )
        if action == "aside":
            waits = f"waits for a person (raymond review {work.step.id}): {reason}"
            return task_edit.blocked(text, id, foreign_text.cut(waits, 160))
        if action == "create-fix-task":
            text, made[0] = task_edit.with_fix(text, id, command=command, output=output, reason=reason, mark=work.mark)
        return text

    _edit(work, placed.place, edit)
    if action == "block":
        for one in repaired(known.in_group(item_ids.repaired(id)), id):
            why = foreign_text.cut(f"{id}, which repairs it, failed: {reason}", 120)
            _edit(work, one.place, task_edit.blocked, one.task.id, why)
    return f"fix task {made[0]}" if made[0] else ""


def _specs(work: "ItemRun") -> Specs:
    """The specs without tasks whose id another one has: nobody can say which of them is meant."""
    found = spec_files.read_tasks(work.documents)
    return replace(found, tasks={id: one for id, one in found.tasks.items() if id not in found.twice})


def _edit(work: "ItemRun", place: str, edit: Callable[..., str], *args: str) -> None:
    before = work.documents.read(place)
    after = edit(before, *args)
    if after != before:
        work.documents.write(after, place)


def _today() -> str:
    return f"{datetime.now(UTC).astimezone():%Y-%m-%d}"


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


class TaskSource(Struct, frozen=True):
    """The tasks that are within the scope of a loop."""

    documents: Documents
    settings: Settings

    def look(self, ledger: Ledger) -> Looked:
        """The tasks that are not verified, and which of them can be worked on."""
        known = spec_files.read_tasks(self.documents)
        items, passed_over = [], []
        for placed in known.tasks.values():
            if not self.has(placed.task.id) or not is_open(placed.task):
                continue
            item = item_of(placed, self.settings)
            why = self._obstacle(item, placed, known)
            if why and item.verification.kind != "blocked":
                passed_over.append(PassedOver(item, why))
            else:
                items.append(item)
        chosen = select(items, ledger, self.settings)
        log = self.documents.newest()
        proposed = proposed_in(self.documents.read(LOGS, log)) if log else []
        chosen = replace(chosen, passed_over=[*chosen.passed_over, *_not_closed(passed_over, ledger), *proposed])
        return Looked(log, chosen, known.warnings)

    def settled(self) -> str:
        """That every task within the scope is verified."""
        tasks = [one.task for id, one in spec_files.read_tasks(self.documents).tasks.items() if self.has(id)]
        if not tasks or any(is_open(one) for one in tasks):
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
        twice = twice_of([placed], known) if known.twice else ""
        return twice or obstacle(item, placed.task, self.settings)

    def warnings_of(self, looked: Looked, item: Item) -> list[PlanWarning]:
        """What is odd about the lines of a task."""
        there = spec_files.read_tasks(self.documents).tasks.get(item.id)
        if there is None:
            return []
        first = there.task.line
        last = first + there.task.body.count("\n") + 1
        return [one for one in looked.warnings if one.place == item.place and first <= one.line <= last]

    def done(self, work: "ItemRun", entry: Entry) -> None:
        """Mark it in its spec."""
        if entry.verdict in (UNCHECKED, PENDING):
            write_completed(work, work.item.tasks)
        elif entry.verdict in DONE:
            write_passed(work, work.item.tasks, by_person=bool(work.item.criteria))

    def failed(self, work: "ItemRun", *, verdict: str, action: str, error: str, attempt: int) -> str:
        """The same for one that does not count; the fix task that was made for it."""
        return write_failed(work, work.item.key, verdict=verdict, action=action, error=error, attempt=attempt)


def _not_closed(passed_over: list[PassedOver], ledger: Ledger) -> list[PassedOver]:
    """Those that the loop itself has not dealt with."""
    closed = ledger.closed()
    return [one for one in passed_over if one.item.id not in closed]
