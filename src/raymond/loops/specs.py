"""The tasks of all implementation specs of a project, and the file that each is in."""

from functools import cached_property

from msgspec import Struct

from raymond.loops import spec_files
from raymond.loops.documents import Documents
from raymond.loops.formats import item_ids, task_spec
from raymond.loops.formats.queue_item import Doubt
from raymond.loops.formats.task_spec import Task


class Placed(Struct, frozen=True):
    """A task, and the spec that it is in, relative to the folder of documents."""

    task: Task
    place: str


class Specs(Struct, frozen=True, dict=True):
    """All of them."""

    tasks: dict[str, Placed]
    """By id, in the order of the ids."""
    doubts: tuple[Doubt, ...]
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


def read(found: Documents) -> Specs:
    """The specs as they are now."""
    placed: dict[str, Placed] = {}
    where: dict[str, list[str]] = {}
    doubts = spec_files.strays(found)
    for spec in spec_files.read(found):
        doubts += [Doubt(one.message, one.line, spec.shown) for one in spec.doubts]
        for task in spec.tasks:
            where.setdefault(task.id, []).append(f"{found.shown(spec.shown)}:{task.line}")
            placed.setdefault(task.id, Placed(task, spec.shown))
    twice = {id: tuple(places) for id, places in where.items() if len(places) > 1}
    ordered = {id: placed[id] for id in sorted(placed, key=task_spec.order)}
    return Specs(ordered, tuple(doubts), twice)
