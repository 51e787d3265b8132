"""What imports have marked in the PRD and in specs, and whether it still is what an import would write."""

import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from glob import escape as glob_escape
from glob import glob
from itertools import zip_longest

from msgspec import Struct

from raymond import pasted
from raymond.errors import Error, UsageError
from raymond.faces.words import many
from raymond.language.check import Check
from raymond.loops import documents, prd_init, spec_files
from raymond.loops.documents import LARGEST, PRD, PRD_STATUS, SPECS, Documents
from raymond.loops.formats import foreign_plan, prd, prd_status, task_spec
from raymond.loops.formats.document import Document
from raymond.loops.formats.foreign_plan import ForeignPlan, ForeignStory, ForeignTask, Unreadable
from raymond.loops.formats.foreign_text import one_line
from raymond.loops.formats.prd import Story
from raymond.loops.formats.task_spec import Task
from raymond.loops.spec_files import Placed, SpecFile
from raymond.patterns import regex

_WORD = regex(r"[^\W_]+")

KINDS = ("prd-json", "fix-plan", "ralphex")
_READERS = {
    "prd-json": foreign_plan.read_ralph_prd,
    "fix-plan": foreign_plan.read_fix_plan,
    "ralphex": foreign_plan.read_ralphex,
}
_ID = regex(prd.ID)
_SLUG = regex(r"[a-z0-9]+")
_IMPORTED = "imported"
_LONGEST = 40


# What earlier imports have marked


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
        return [self.tasks.get(foreign_plan.import_mark(self.name, mark_of(story, task))) for task in story.tasks]


def read_marks(name: str, stories: Iterable[Story], specs: Iterable[SpecFile]) -> Marked:
    """What is marked in all of these."""
    return Marked(
        name,
        {line.rstrip("\r"): one for one in stories for line in one.body.split("\n")},
        {line: Placed(task, one.shown) for one in specs for task in one.tasks for line in _first(task.body)},
    )


def _first(body: str) -> list[str]:
    """The lines of a section in which its mark is."""
    return [line.rstrip("\r") for line in body.split("\n", 3)[:3]]


def mark_of(story: ForeignStory, task: ForeignTask) -> str:
    """What a task is called in its mark."""
    return task.key if task.key == story.key else f"{story.key}/{task.key}"


def check_tasks(
    found: Documents, marked: Marked, id: str, story: ForeignStory, written: Sequence[Placed], command: str
) -> None:
    """Refuse tasks that are there already and are not what the import of this story would write."""
    for placed, given in zip(written, story.tasks, strict=False):
        task = placed.task
        named = {"name": marked.name, "key": mark_of(story, given), "story": id, "command": command}
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


class Addition(Struct, frozen=True):
    """A story that is new."""

    id: str
    story: ForeignStory
    tasks: tuple[tuple[str, ForeignTask], ...]
    """With their ids."""
    depends_on: tuple[str, ...]
    written: tuple[Placed, ...] = ()
    """Its tasks, if they are in a spec already: an import was cut off, or somebody else has written them."""


class Import(Struct, frozen=True):
    """What an import would add, and where."""

    documents: Documents
    file: str
    name: str
    """The file as its marks have it."""
    plan: ForeignPlan
    command: str
    stories: tuple[Addition, ...]
    known: int
    """Stories that were imported before."""
    unrecorded: tuple[tuple[str, ForeignStory], ...]
    """Those of them that the status file lacks, with their ids: an import was cut off."""
    prd: str
    """The text of the PRD."""
    group: str
    """The number of the new spec, such as `3.1`."""
    spec: str
    """Its path from the folder of documents."""


def look(found: Documents, file: str, kind: str, verify: str) -> Import:
    """Read the file, and find out what of it is new; nothing is changed."""
    if "\n" in verify or "\r" in verify:
        raise UsageError("--verify is one line", hint="put several commands into a script, and name that")
    prd_init.check_folders(found)
    text = _text(file)
    kind = kind or _kind(text, file)
    try:
        plan = _READERS[kind](text)
    except Unreadable as error:
        others = " or ".join(f"--as {one}" for one in KINDS if one != kind)
        hint = f"it was read as {kind}: fix it, or if it is something else, {others}"
        raise UsageError(f"{file}:{error.line}: {error}", hint=hint) from None
    name = _name(found, file)
    there = _prd(found)
    specs = spec_files.read_files(found)
    group, spec = _place(found, specs, file)
    command = verify or foreign_plan.one_command(plan.commands)
    known = prd.read(there).stories
    marked = read_marks(name, known, specs)
    new = [one for one in plan.stories if not marked.id_of(one.key)]
    stories = tuple(_additions(_Ids({one.id for one in known} | _remembered(found)), new, marked, group))
    for one in stories:
        check_tasks(found, marked, one.id, one.story, one.written, command)
    fresh = {one.key for one in new}
    before = [one for one in plan.stories if one.key not in fresh]
    if kind != "fix-plan":  # the keys of a checklist are made of its titles
        check_titles(found, marked, before)
    left = tuple(_unrecorded(found, before, marked))
    return Import(found, file, name, plan, command, stories, len(before), left, there, group, spec)


def _text(file: str) -> str:
    if os.path.exists(file) and not os.path.isfile(file):  # whoever opens a pipe waits
        raise UsageError(f"{file} is not a file", hint="name a file such as prd.json")
    try:
        with open(file, "rb") as opened:
            data = opened.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(f"{file}: {(error.strerror or '').lower()}", hint="name a file that can be read") from None
    if len(data) > LARGEST:
        raise UsageError(f"{file} is larger than {LARGEST >> 20} MiB", hint="split it")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{file}:{line}: this is not UTF-8", hint="save it as UTF-8") from None


def _kind(text: str, file: str) -> str:
    if text.lstrip("\ufeff \t\r\n")[:1] in ("{", "["):
        return "prd-json"
    if foreign_plan.is_ralphex(text):
        return "ralphex"
    if foreign_plan.is_checklist(text):
        return "fix-plan"
    what = f"{file}:1: this is neither a prd.json, nor a checklist, nor a plan of ralphex"
    raise UsageError(what, hint=f"--as {'|'.join(KINDS)} says what it is meant to be")


def _name(found: Documents, file: str) -> str:
    """The file as it is called from here; one from elsewhere by its own name."""
    path = os.path.relpath(os.path.realpath(file), os.path.realpath(found.cwd))
    return one_line(os.path.basename(path) if path.startswith("..") else path)


def _prd(found: Documents) -> str:
    if PRD in found.names() and not found.exists(PRD):
        raise UsageError(f"{found.shown(PRD)} is not a file", hint="move it away")
    text = found.read(PRD)
    document = Document(text)
    if document.open_comment is not None:
        what = f"{found.shown(PRD)}:{document.number(document.open_comment)}: this comment is not closed"
        raise UsageError(what, hint="close it with -->, then import again")
    return text


def _place(found: Documents, specs: list[SpecFile], file: str) -> tuple[str, str]:
    """The number of a new spec, and its path."""
    areas = spec_files.areas(found)
    taken = [*areas.values(), *(int(task_spec.area(task.id)) for spec in specs for task in spec.tasks)]
    area = next((number for name, number in sorted(areas.items()) if name == f"{number}-{_IMPORTED}"), 0)
    group = 1 + max((spec.group for spec in specs if spec.area == area), default=0) if area else 1
    area = area or 1 + max(taken, default=0)
    stem = os.path.splitext(os.path.basename(file))[0]
    slug = "-".join(_SLUG.findall(stem.lower()))[:_LONGEST].strip("-") or "stories"
    return f"{area}.{group}", os.path.join(SPECS, f"{area}-{_IMPORTED}", f"{area}.{group}-{slug}.md")


def _additions(taken: "_Ids", new: list[ForeignStory], marked: Marked, group: str) -> Iterator[Addition]:
    ids: dict[str, str] = {}
    known: dict[str, tuple[Placed, ...]] = {}
    for story in new:
        tasks = marked.tasks_of(story)
        own = next((id for one in tasks if one for id in one.task.implements), "")
        if own and own not in taken.ids and all(tasks):
            known[story.key] = tuple(one for one in tasks if one)
        ids[story.key] = taken.take(own) if story.key in known else taken.new(story.id)
    number = 0
    for story in new:
        numbers = range(number + 1, number + 1 + len(story.tasks))
        written = known.get(story.key, ())
        number += 0 if written else len(story.tasks)
        names = [one.task.id for one in written] or [f"{group}.{one}" for one in numbers]
        needed = [ids.get(one) or marked.id_of(one) for one in story.depends_on]
        depends = tuple(one for one in needed if one and one != ids[story.key])
        pairs = tuple(zip(names, story.tasks, strict=True))
        yield Addition(ids[story.key], story, pairs, depends, written)


def _unrecorded(found: Documents, before: list[ForeignStory], marked: Marked) -> Iterator[tuple[str, ForeignStory]]:
    status, broken = prd_init.before(found)
    if broken:
        return
    known = {one["id"]: one for one in status["stories"]} if status else {}
    for story in before:
        id = marked.id_of(story.key)
        # A story that the file calls done only now is not taken over: its tasks say what it was.
        own = marked.tasks_of(story)
        was_done = story.is_done and all(one and one.task.status == "complete" for one in own)
        if id and (id not in known or (was_done and not known[id].get("history"))):
            yield id, story


def _remembered(found: Documents) -> set[str]:
    """The ids of stories that the status file knows, also of those that are gone."""
    before = prd_init.before(found)[0]
    return {one["id"] for one in before["stories"]} if before else set()


class _Ids:
    """The ids that stories have."""

    def __init__(self, ids: Iterable[str]) -> None:
        self.ids: set[str] = set()
        self._highest = 0
        for id in ids:
            self.take(id)

    def take(self, id: str) -> str:
        """Note that a story has this one."""
        self.ids.add(id)
        if id.startswith("US-") and id[3:].isdecimal():
            self._highest = max(self._highest, int(id[3:]))
        return id

    def new(self, given: str) -> str:
        """One that no story has: the one it has in its file, if that is free."""
        wanted = f"US-{int(given)}" if given.isdecimal() and given.isascii() and len(given) < 7 else given
        if _ID.fullmatch(wanted) and wanted not in self.ids:
            return self.take(wanted)
        return self.take(f"US-{self._highest + 1}")


# What is written


def write(plan: Import, now: datetime) -> Iterator[str]:
    """Write it all: the spec, the PRD, the status; what was done, in words.

    Cut off in between, the same import again writes what is missing.
    """
    if plan.stories:
        yield from _write_stories(plan)
    survey = prd_init.look(plan.documents)
    status = prd_init.status_of(survey, now, medium=False)
    for id, story in (*((one.id, one.story) for one in plan.stories), *plan.unrecorded):
        if story.is_done:
            note = f"done according to {plan.name}; not verified yet"
            status = prd_status.recorded(status, id, "imported", f"{now:%Y-%m-%dT%H:%M:%SZ}", note)
    aside = prd_init.write(survey, status)
    if aside:
        yield f"the broken status file is now {aside}"
    yield prd_init.told(survey, status)


def _write_stories(plan: Import) -> Iterator[str]:
    spec, text = _spec(plan), _stories(plan)
    _check(plan, spec, text)
    if spec:
        plan.documents.write(spec, plan.spec)
        count = sum(len(one.tasks) for one in plan.stories if not one.written)
        yield f"wrote {plan.documents.shown(plan.spec)}: {many(count, 'task')}"
    _forget_unfinished(plan.documents)
    plan.documents.write(text, PRD)
    yield f"added {_count(len(plan.stories))} to {plan.documents.shown(PRD)}"


def _forget_unfinished(found: Documents) -> None:
    """Remove what imports that were killed had begun to write: nobody but an import writes the PRD."""
    for path in glob(f"{glob_escape(found.path(PRD))}.*{documents.ASIDE}"):
        if os.path.isfile(path) and not os.path.islink(path):
            os.unlink(path)


def _spec(plan: Import) -> str:
    new = [one for one in plan.stories if not one.written]
    if not new:
        return ""
    parts = [foreign_plan.as_head(plan.group, plan.plan.title, plan.name)]
    for one in new:
        for id, task in one.tasks:
            key = mark_of(one.story, task)
            parts.append(foreign_plan.as_task(id, task, name=plan.name, key=key, story=one.id, command=plan.command))
    return "\n".join(parts)


def _stories(plan: Import) -> str:
    level = foreign_plan.heading_level(plan.prd)
    return foreign_plan.with_stories(
        plan.prd,
        [
            foreign_plan.as_story(
                one.id,
                one.story,
                name=plan.name,
                level=level,
                tasks=[id for id, _ in one.tasks],
                depends_on=one.depends_on,
            )
            for one in plan.stories
        ],
    )


def _check(plan: Import, spec: str, text: str) -> None:
    """Refuse what would not be read as it is meant."""
    tasks = {one.id: one for one in task_spec.read(spec).tasks}
    stories = {one.id: one for one in prd.read(text).stories}
    lost = [one.id for one in prd.read(plan.prd).stories if one.id not in stories]
    if lost:
        what = f"{plan.documents.shown(PRD)}: with more stories in it, {lost[0]} would not count any more"
        raise Error(what, hint=f"put all stories under one heading `## {prd.TITLE}`")
    for one in plan.stories:
        story = stories.get(one.id)
        if story is None or story.problem or story.implemented_by != tuple(id for id, _ in one.tasks):
            what = f"{plan.file}:{one.story.line}: this cannot be added to {plan.documents.shown(PRD)} as it is"
            raise Error(what, hint="change its title or text, or add the story by hand")
        for id, _ in () if one.written else one.tasks:
            task = tasks.get(id)
            run = task.check.run if task and task.check else ""
            if task is None or task.problem or task.implements != (one.id,) or run != plan.command:
                what = f"{plan.file}:{one.story.line}: the check `{plan.command}` cannot be written into a spec"
                raise Error(what, hint="put it into a script, and pass that: --verify 'sh check.sh'")


# Words


def warnings(plan: Import) -> Iterator[str]:
    """What may not be meant, with its place."""
    for one in plan.plan.warnings:
        yield f"{plan.file}:{one.line}: {one.message}"
    if plan.stories and not plan.command:
        yield "there is no check, so a person has to verify each task: --verify COMMAND sets one"


def lines(plan: Import) -> Iterator[str]:
    """What would be added."""
    if plan.known:
        yield f"imported before, and left as it is: {_count(plan.known)}"
    for one in plan.stories:
        done = " (done according to the file)" if one.story.is_done else ""
        yield f"{one.id}: {one_line(one.story.title)}{done}"
        if len(one.tasks) > 1:
            yield f"  check of each task: {plan.command or 'manual'}"
        for (id, task), placed in zip_longest(one.tasks, one.written):
            what = one_line(task.title) if len(one.tasks) > 1 else plan.command or "manual"
            said = _claimed(task) if len(one.tasks) > 1 or task.ticked else ""
            yield f"  {id}. {what}{said}{_there(plan.documents, placed) if placed else ''}"
    for id, story in plan.unrecorded:
        yield f"{id}: {one_line(story.title)} (imported before, and missing in {plan.documents.shown(PRD_STATUS)})"


def _claimed(task: ForeignTask) -> str:
    """How much of a task its file calls done."""
    if task.is_done:
        return " (done according to the file)"
    return f" ({len(task.ticked)} of {len(task.criteria)} boxes are ticked in the file)" if task.ticked else ""


def _there(found: Documents, placed: Placed) -> str:
    """Where a task is already, and how it stands: its check is the one that was asked for."""
    status = task_spec.SHOWN[placed.task.status]
    return f" (there already: {found.shown(placed.place)}:{placed.task.line}, {status})"


def question(plan: Import) -> str:
    """What a person is asked."""
    if not plan.stories:
        return f"Complete {plan.documents.shown(PRD_STATUS)}?"
    written = [task.place for one in plan.stories for task in one.written]
    new = [] if all(one.written for one in plan.stories) else [plan.spec]
    specs = " and ".join(plan.documents.shown(one) for one in dict.fromkeys((*new, *written)))
    return f"Add {_count(len(plan.stories))} to {plan.documents.shown(PRD)}, with tasks in {specs}?"


def _count(number: int) -> str:
    return many(number, "story")
