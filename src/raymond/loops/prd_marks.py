"""What imports have marked in the PRD and in specs, and whether it still is what an import would write."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from raymond import pasted
from raymond.errors import UsageError
from raymond.language.check import Check
from raymond.loops.documents import PRD, Documents
from raymond.loops.formats import foreign_plan, task_spec
from raymond.loops.formats.foreign_plan import ForeignStory, ForeignTask
from raymond.loops.formats.foreign_text import one_line
from raymond.loops.formats.prd import Story
from raymond.loops.formats.task_spec import Task
from raymond.loops.spec_files import SpecFile
from raymond.loops.specs import Placed
from raymond.patterns import regex

_WORD = regex(r"[^\W_]+")


class Marked(Struct, frozen=True):
    """The stories and tasks that were imported, by the lines among which their marks are."""

    name: str
    """The file that is imported, as its marks have it."""
    stories: dict[str, Story]
    tasks: dict[str, Placed]

    def id_of(self, key: str) -> str:
        """The id of a story; empty when it was not imported."""
        story = self.stories.get(foreign_plan.import_mark(self.name, key))
        return story.id if story else ""

    def tasks_of(self, story: ForeignStory) -> list[Placed | None]:
        """Each of its tasks as a spec has it already."""
        return [self.tasks.get(foreign_plan.import_mark(self.name, key(story, task))) for task in story.tasks]


def read(name: str, stories: Iterable[Story], specs: Iterable[SpecFile]) -> Marked:
    """What is marked in all of these."""
    return Marked(
        name,
        {line.rstrip("\r"): one for one in stories for line in one.body.split("\n")},
        {line: Placed(task, one.shown) for one in specs for task in one.tasks for line in _first(task.body)},
    )


def _first(body: str) -> list[str]:
    """The lines of a section in which its mark is."""
    return [line.rstrip("\r") for line in body.split("\n", 3)[:3]]


def key(story: ForeignStory, task: ForeignTask) -> str:
    """What a task is called in its mark."""
    return task.key if task.key == story.key else f"{story.key}/{task.key}"


def check_tasks(
    found: Documents, marked: Marked, id: str, story: ForeignStory, written: Sequence[Placed], command: str
) -> None:
    """Refuse tasks that are there already and are not what the import of this story would write."""
    for placed, given in zip(written, story.tasks, strict=False):
        task = placed.task
        named = {"name": marked.name, "key": key(story, given), "story": id, "command": command}
        meant = next(iter(task_spec.read(foreign_plan.as_task(task.id, given, **named)).tasks), None)
        there = f"{found.shown(placed.place)}:{task.line}: {task.id} is there already"
        if meant is None or _decides(task) != _decides(meant):
            own, other = _verification(task), _verification(meant) if meant else command
            told = f"with another check: {own} instead of {other}" if own != other else "but not as it would be written"
            keep = _kept(task.check)
            raise UsageError(f"{there}, {told}", hint=f"remove that task, then import again{keep}")
        if task.verified or (task.status == "complete" and not given.is_done):
            mark = "verified" if task.verified else "complete"
            hint = "set its **Status:** to 🔵 Planned and remove **Verified:**, then import again: the check decides"
            raise UsageError(f"{there}, and is marked as {mark}, which {marked.name} does not say", hint=hint)


def _decides(task: Task) -> tuple[object, ...]:
    """What of a task decides when it is verified, and for which story."""
    own = (task.check, task.is_manual, task.criteria, task.problem)
    return (*own, task.retries, task.seal, task.may, task.implements, task.proposed)


def _kept(check: Check | None) -> str:
    """The way to import a task with the check that it has."""
    return f", or keep its check: {pasted.flag('--verify', check.run, 'COMMAND')}" if check and _is_plain(check) else ""


def _is_plain(check: Check) -> bool:
    return check == Check(run=check.run)


def _verification(task: Task) -> str:
    """The check of a task in words."""
    if not task.check:
        return "manual" if task.is_manual else "none"
    is_all = _is_plain(task.check) and not (task.retries or task.seal or task.may or task.proposed)
    return f"`{task.check.run}`" if is_all else f"`{task.check.run}` with settings of its own"


def check_titles(found: Documents, marked: Marked, before: Iterable[ForeignStory]) -> None:
    """Refuse a story that is called as another one was: it would be taken for that, and be lost."""
    for one in before:
        story = marked.stories.get(foreign_plan.import_mark(marked.name, one.key))
        if story is None or _plain(story.title) == _plain(one.title):
            continue
        pairs = zip(marked.tasks_of(one), one.tasks, strict=True)
        same = [_plain(there.task.title) == _plain(task.title) for there, task in pairs if there]
        if same and all(same):
            continue  # a person has changed the title in the PRD
        where = f"{found.shown(PRD)}:{story.line}"
        what = f"{marked.name}/{one.key} was imported before with another title: {where}: {one_line(story.title)}"
        hint = (
            f"if `{one_line(one.title)}` is another story, give the file another name and import it;"
            " if it is the same, give both the same title"
        )
        raise UsageError(what, hint=hint)


def _plain(title: str) -> str:
    return " ".join(_WORD.findall(foreign_plan.as_title(title).casefold()))
