"""Stories of a PRD as items of a loop, with the tasks that they take."""

from collections.abc import Collection, Iterator

from msgspec import Struct
from msgspec.structs import replace

from raymond.loops import checks, task_items
from raymond.loops.documents import PRD, SPECS
from raymond.loops.formats.prd import Story, StoryCheck
from raymond.loops.formats.queue_item import Item, Metadata, Verification
from raymond.loops.selection import Passed
from raymond.loops.settings import Settings
from raymond.loops.specs import Placed, Specs

NO_TASKS = (
    "it has no tasks: write **Implemented by:** 1.4.1 under it, or **Implements:** {id} under a task,"
    " or let an agent propose some with --create-tasks"
)
_PROPOSED = (
    "its tasks are proposed by an agent: look at {where}, remove the lines **Proposed:** yes, or --accept-proposed"
)


_UNCHECKED = "{task} has no check, so {id} cannot be verified{how}: give it a **Verification:**{or_else}"


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
) -> tuple[list[Item], list[Passed]]:
    """What can be worked on for a story, in order; and what cannot, with the reason.

    Tasks in `closed` are not tried again.
    """
    story = linked.story
    own = _item(story, linked.names, settings)
    found, missing = task_items.tasks_of(linked.names, known)
    if why := _obstacle(linked, own, missing, found, known, settings):
        return [], [Passed(own, why)]
    if not found:
        return [_planning(own, story)], []
    left = [one for one in found if task_items.is_open(one.task)]
    if task_items.is_verified_by_tasks(own):  # checks that an agent proposed, also those that were green before
        own = replace(own, proposed=any(one.task.proposed for one in found))
    if left and settings.runs_tasks:
        return _tasks(own, left, known, settings, closed)
    if task_items.is_verified_by_tasks(own):
        checked = task_items.linked(own, linked.names, known, settings)
        return _judged(checked, linked, settings) if isinstance(checked, Item) else ([], [Passed(own, checked)])
    sections = [task_items.section(one, settings) for one in left]
    details = task_items.joined([own.details, *sections], f"{settings.docs}/{SPECS}")
    same = tuple(one.task.id for one in left if one.task.check in own.checks)
    return _judged(replace(own, details=details, is_claimed=not left, tasks=same), linked, settings)


def _judged(item: Item, linked: Linked, settings: Settings) -> tuple[list[Item], list[Passed]]:
    """What only a person can judge is not worked on again, and waits where nobody can be asked."""
    item = replace(item, is_claimed=item.is_claimed or (linked.is_pending and bool(item.criteria)))
    if item.is_claimed and item.criteria and not settings.asks:
        return [], [Passed(item, task_items.MANUAL)]
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
    if twice := task_items.twice_of(found, known):
        return twice
    if not found and not settings.create_tasks:
        return NO_TASKS.format(id=story.id)
    left = [one for one in found if task_items.is_open(one.task)]
    counts_tasks = task_items.is_verified_by_tasks(own)
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
        Verification("command", checks.told(commands)) if commands else Verification("manual" if criteria else "none")
    )
    return Item(
        title=task_items.titled(f"{story.id}: {story.title}"),
        verification=Verification("task-loop") if _names_tasks(check) else kind,
        priority=story.priority,
        metadata=Metadata(),
        details=task_items.joined([story.body.strip()], f"{settings.docs}/{PRD}"),
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
) -> tuple[list[Item], list[Passed]]:
    """The tasks of a story as items of their own; the story is next when none of them is left."""
    ready, passed = [], []
    for placed in left:
        item = task_items.item_of(placed, settings, own.id)
        why = task_items.obstacle(item, placed.task, settings)
        if why and item.verification.kind != "blocked":
            passed.append(Passed(item, why))
        else:
            ready.append(item)
    if all(one.id in closed or one.verification.kind == "blocked" for one in ready):
        names = ", ".join(one.task.id for one in left)
        passed.append(Passed(own, f"its tasks are not verified: {names}"))
    return ready, passed
