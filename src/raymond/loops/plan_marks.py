"""What an agent marked as done in specs and in the status of stories, and which checks it changed there."""

import os
from collections.abc import Iterable, Iterator

from msgspec import Struct

from raymond.loops.documents import PRD, PRD_STATUS
from raymond.loops.formats import prd, prd_status, task_spec
from raymond.loops.formats.foreign_text import cut
from raymond.loops.formats.state_file import Broken
from raymond.loops.formats.task import Task
from raymond.loops.plan_changes import check

_NAMED = 20
_LONGEST = 60
"""Characters of an id."""


class Mark(Struct, frozen=True):
    """What a document says about a task or a story."""

    kind: str
    id: str
    path: str
    check: object
    done: str = ""
    """How it says that it is done; empty when it does not."""

    @property
    def words(self) -> str:
        """It in words."""
        return f"{self.kind} {cut(self.id, _LONGEST)}"


def between(before: Iterable[tuple[str, str]], now: Iterable[tuple[str, str]]) -> list[str]:
    """What is to be noted of documents that an agent changed: each with its path and its text."""
    notes: dict[str, None] = {}
    known: dict[tuple[bool, str, str], list[Mark]] = {}
    for path, text in before:
        for one in _marks(path, text, {}):
            known.setdefault(_key(one), []).append(one)
    for path, text in now:
        for one in _marks(path, text, notes):
            old = known.get(_key(one), [])
            if one.done and not any(other.done in (one.done, "verified") for other in old):
                notes[f"marked {one.words} as {one.done} in {path}"] = None
            if old and not any(other.check == one.check for other in old):
                notes[f"changed the check of {one.words} in {path}"] = None
    more = [f"marked or changed {len(notes) - _NAMED} more tasks and stories"] if len(notes) > _NAMED else []
    return [*list(notes)[:_NAMED], *more]


def _key(mark: Mark) -> tuple[bool, str, str]:
    """What stays the same when a spec is renamed; the status of a story is not in the PRD."""
    return os.path.basename(mark.path) == PRD_STATUS, mark.kind, mark.id


def _marks(path: str, text: str, notes: dict[str, None]) -> Iterator[Mark]:
    name = os.path.basename(path)
    if name == PRD:
        for one in prd.read(text).stories:
            yield Mark("story", one.id, path, one.check())
    elif name != PRD_STATUS:
        for task in task_spec.read(text).tasks:
            yield Mark("task", task.id, path, check(task), _done(task))
    elif text:
        try:
            stories = prd_status.read(text)["stories"]
        except Broken as error:
            notes[f"changed {path}, which cannot be read any more: {cut(str(error), _LONGEST)}"] = None
            return
        for given in stories:
            yield Mark("story", given["id"], path, given.get("verification"), "passing" if given.get("passes") else "")


def _done(task: Task) -> str:
    return "verified" if task.verified else "complete" if task.status == "complete" else ""
