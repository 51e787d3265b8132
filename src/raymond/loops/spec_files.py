"""The implementation specs of a project, docs/implementation/{N}-{name}/{N}.{M}-{topic}.md, with their tasks."""

import os
from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from raymond.loops.documents import SPECS, Documents
from raymond.loops.formats import item_ids, misspelt, task_spec
from raymond.loops.formats.queue_item import PlanWarning
from raymond.loops.formats.task_spec import Task
from raymond.patterns import regex

_AREA = regex(r"([0-9]{1,9})-.+")
_OF_TASKS = ("status", "verification")
_STRAY = (
    f"this file is not a spec, so its tasks do not count: name it {SPECS}/{{N}}-{{name}}/{{N}}.{{M}}-{{topic}}.md,"
    " with the same N"
)
_SPEC = regex(r"([0-9]{1,9})\.([0-9]{1,9})-.+\.md")


class SpecFile(Struct, frozen=True):
    """One spec and what is in it."""

    area: int
    group: int
    folder: str
    """The name of its area's folder."""
    name: str
    text: str
    tasks: tuple[Task, ...]
    warnings: tuple[PlanWarning, ...]

    @property
    def shown(self) -> str:
        """Its path from the folder of documents."""
        return os.path.join(SPECS, self.folder, self.name)


def areas(found: Documents) -> dict[str, int]:
    """The folders of areas, and their numbers."""
    return {name: int(one[1]) for name in found.names(SPECS) if (one := _AREA.fullmatch(name))}


def read_files(found: Documents) -> list[SpecFile]:
    """All specs, by their numbers; a link is none of them."""
    return sorted(_read(found), key=lambda one: (one.area, one.group, one.folder, one.name))


def _read(found: Documents) -> Iterator[SpecFile]:
    there = list(_found(found))
    found.preload(path for path, _, _ in there)
    for path, area, group in there:
        text = found.read(path)
        spec = task_spec.read(text)
        _, folder, name = path.split("/")
        yield SpecFile(area, group, folder, name, text, spec.tasks, spec.warnings)


def strays(found: Documents) -> list[PlanWarning]:
    """Files with tasks that are not where a spec has to be, each with its path."""
    known = set(paths(found))
    return [one for path in sorted(_texts(found)) if path not in known and (one := _stray(found, path))]


def _stray(found: Documents, path: str) -> PlanWarning | None:
    try:
        tasks = task_spec.read(found.beginning(path)).tasks
    except OSError:
        return None  # nobody needs it
    first = next((one for one in tasks if misspelt.field_in(one.body, 0, len(one.body), _OF_TASKS)), None)
    return PlanWarning(_STRAY, first.line, path) if first else None


def _texts(found: Documents) -> Iterator[str]:
    """The files in the folder of specs, and in the folders there."""
    for name in found.names(SPECS):
        path = os.path.join(SPECS, name)
        below = _below(found, name)
        yield from (one for one in (path, *(os.path.join(path, other) for other in below)) if one.endswith(".md"))


def _below(found: Documents, name: str) -> list[str]:
    try:
        return found.names(SPECS, name)
    except PermissionError:
        return []


def paths(found: Documents) -> Iterator[str]:
    """The specs, from the folder of documents."""
    return (path for path, _, _ in _found(found))


def _found(found: Documents) -> Iterator[tuple[str, int, int]]:
    """The path of each spec, its area and its group."""
    for folder, area in areas(found).items():
        for name in found.names(SPECS, folder):
            numbers = _SPEC.fullmatch(name)
            if numbers and int(numbers[1]) == area:
                yield os.path.join(SPECS, folder, name), area, int(numbers[2])


class Placed(Struct, frozen=True):
    """A task, and the spec that it is in, relative to the folder of documents."""

    task: Task
    place: str


class Specs(Struct, frozen=True, dict=True):
    """All of them."""

    tasks: dict[str, Placed]
    """By id, in the order of the ids."""
    warnings: tuple[PlanWarning, ...]
    twice: dict[str, tuple[str, ...]]
    """Ids that several tasks have, and where each is."""

    def in_group(self, name: str) -> list[Placed]:
        """The tasks that a name stands for: a task with its repairs, a group `1.4`, or an area `1`."""
        return self._groups.get(name, [])

    @cached_property
    def _groups(self) -> dict[str, list[Placed]]:
        """The tasks by every name that stands for them."""
        found: dict[str, list[Placed]] = {}
        for id, placed in self.tasks.items():
            for name in item_ids.names(id):
                found.setdefault(name, []).append(placed)
        return found

    @cached_property
    def implementing(self) -> dict[str, list[str]]:
        """The ids of the tasks that say themselves which stories they are part of, by story."""
        found: dict[str, list[str]] = {}
        for id, placed in self.tasks.items():
            for story in placed.task.implements:
                found.setdefault(story, []).append(id)
        return found


def read_tasks(found: Documents) -> Specs:
    """The specs as they are now."""
    where: dict[str, list[Placed]] = {}
    warnings = strays(found)
    for spec in read_files(found):
        place = spec.shown
        warnings += [PlanWarning(one.message, one.line, place) for one in spec.warnings]
        for task in spec.tasks:
            where.setdefault(task.id, []).append(Placed(task, place))
    twice = {
        id: tuple(f"{found.shown(one.place)}:{one.task.line}" for one in places)
        for id, places in where.items()
        if len(places) > 1
    }
    ordered = {id: where[id][0] for id in sorted(where, key=task_spec.order)}
    return Specs(ordered, tuple(warnings), twice)
