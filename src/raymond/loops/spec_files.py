"""The implementation specs of a project: docs/implementation/{N}-{name}/{N}.{M}-{topic}.md."""

import os
from collections.abc import Iterator

from msgspec import Struct

from raymond.loops import documents
from raymond.loops.documents import SPECS, Documents
from raymond.loops.formats import task_spec
from raymond.loops.formats.item import Doubt
from raymond.loops.formats.task import Task
from raymond.patterns import regex

_AREA = regex(r"([0-9]{1,9})-.+")
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
    doubts: tuple[Doubt, ...]

    @property
    def shown(self) -> str:
        """Its path from the folder of documents."""
        return os.path.join(SPECS, self.folder, self.name)


def areas(found: Documents) -> dict[str, int]:
    """The folders of areas, and their numbers."""
    return {name: int(one[1]) for name in _names(found.path(SPECS)) if (one := _AREA.fullmatch(name))}


def read(found: Documents) -> list[SpecFile]:
    """All specs, by their numbers; a link is none of them."""
    return sorted(_read(found), key=lambda one: (one.area, one.group, one.folder, one.name))


def _read(found: Documents) -> Iterator[SpecFile]:
    for path, area, group in _found(found):
        text = documents.read(found.path(path))
        spec = task_spec.read(text)
        _, folder, name = path.split("/")
        yield SpecFile(area, group, folder, name, text, spec.tasks, spec.doubts)


def paths(found: Documents) -> Iterator[str]:
    """The specs, from the folder of documents."""
    return (path for path, _, _ in _found(found))


def _found(found: Documents) -> Iterator[tuple[str, int, int]]:
    """The path of each spec, its area and its group."""
    for folder, area in areas(found).items():
        path = found.path(SPECS, folder)
        if os.path.islink(path) or not os.path.isdir(path):
            continue
        for name in _names(path):
            numbers = _SPEC.fullmatch(name)
            if numbers and int(numbers[1]) == area:
                yield os.path.join(SPECS, folder, name), area, int(numbers[2])


def _names(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except (FileNotFoundError, NotADirectoryError):
        return []
