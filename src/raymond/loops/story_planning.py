"""What must hold before a loop over stories begins."""

from raymond.errors import UsageError
from raymond.loops import opening, task_items
from raymond.loops.documents import PRD, PRD_STATUS, Documents
from raymond.loops.formats import links, prd, prd_status, task_spec
from raymond.loops.formats.prd import Prd, Story
from raymond.loops.formats.state_file import Broken
from raymond.loops.settings import Settings
from raymond.loops.specs import Specs
from raymond.loops.story_items import NO_TASKS
from raymond.loops.story_source import StorySource

_EXAMPLE = "`## User Stories`, then `### US-1: Title` with `**Acceptance Criteria:**` and `**Implemented by:** 1.1.1`"


def check(found: Documents, settings: Settings, known: Specs) -> None:
    """Refuse a PRD that a loop could not work through."""
    opening.check_size(found, PRD)
    text = found.read(PRD)
    read = prd.read(text)
    if not text:
        hint = f"write it: {_EXAMPLE}; or raymond prd import FILE makes one of another format"
        raise UsageError(f"there is no {found.shown(PRD)}", hint=hint)
    if not read.stories:
        hint = next((f"line {one.line}: {one.message}" for one in read.doubts), f"write {_EXAMPLE}")
        raise UsageError(f"{found.shown(PRD)} has no stories", hint=hint)
    _check_ids(found, settings, read)
    _check_status(found)
    _check_tasks(found, settings, known, read.stories)


def _check_ids(found: Documents, settings: Settings, read: Prd) -> None:
    shown, ids = found.shown(PRD), [one.id for one in read.stories]
    for id, first, other in read.twice:
        what = f"two stories have the id {id}: {shown}:{first} and {shown}:{other}"
        raise UsageError(what, hint="give one of them another id")
    if settings.story and settings.story not in ids:
        raise UsageError(f"--story {settings.story}: there is no such story", hint=f"{shown} has {opening.few(ids)}")


def _check_status(found: Documents) -> None:
    opening.check_size(found, PRD_STATUS)
    text = found.read(PRD_STATUS)
    if not text:
        hint = "raymond prd status-init builds it, and shows which tasks it links to which stories"
        raise UsageError(f"there is no {found.shown(PRD_STATUS)}", hint=hint)
    try:
        prd_status.read(text)
    except Broken as error:
        hint = "repair it, or raymond prd status-init keeps it aside and builds another one"
        raise UsageError(f"{found.shown(PRD_STATUS)}: {error}", hint=hint) from None


def _check_tasks(found: Documents, settings: Settings, known: Specs, stories: tuple[Story, ...]) -> None:
    """Refuse stories that the loop would come to and that nothing says how to implement."""
    source = StorySource(found, settings)
    for linked in source.failing(known, stories, source.status())[: settings.most or None]:
        tasks, missing = task_items.tasks_of(linked.names, known)
        if not tasks and not settings.create_tasks and not linked.story.problem:
            where = f"{found.shown(PRD)}:{linked.story.line}: {linked.story.id}"
            if missing:
                raise UsageError(f"{where}: there is no task {missing[0]}", hint=_near(missing[0], known))
            what, _, hint = NO_TASKS.format(id=linked.story.id).partition(": ")
            raise UsageError(f"{where}: {what}", hint=_alike(linked.story, stories, known) or hint)


def _near(name: str, known: Specs) -> str:
    """The tasks of which one may be meant."""
    near = known.in_group(task_spec.group(name)) or known.in_group(task_spec.area(name)) or known.tasks.values()
    ids = [one.task.id for one in near]
    return f"there is {opening.few(ids)}: correct its **Implemented by:**" if ids else "write it, or name another one"


def _alike(story: Story, stories: tuple[Story, ...], known: Specs) -> str:
    """How a story gets the tasks that have words in common with it; empty when there are none."""
    found = links.find(stories, [one.task for one in known.tasks.values()]).of(story.id)
    if not found:
        return ""
    names = ", ".join(found[:3])
    return f"raymond prd status-init --yes links it to {names}, or write **Implemented by:** {names} under it"
