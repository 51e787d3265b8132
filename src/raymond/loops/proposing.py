"""Tasks that an agent proposes for a story: read from its message, written into a spec of their own."""

import os
from collections.abc import Sequence
from typing import Any

from raymond.loops import finishing, markers, spec_files
from raymond.loops.documents import SPECS, Documents
from raymond.loops.formats import planned_text, session_log, task_spec
from raymond.loops.formats.task import Task
from raymond.loops.inspection import Inspection
from raymond.loops.ledger import PLANNED
from raymond.loops.work import Work

NONE = "the agent named no task of the form that it was asked for"
UNCLEAR = "the tasks that the agent named cannot be written down as it meant them: one of them is not plain text"
_MOST = 50
"""Tasks of a story; whoever names more has not understood what one is, or the story is several."""
_FOLDER = "stories"
"""What the folder of the area is called that these tasks are in, after its number."""
_PLANNING = " (plan its tasks)"


def read(reply: str) -> list[Task]:
    """The tasks in the message of an agent."""
    return [one for one in task_spec.read(markers.without(reply)).tasks if one.title]


def plan(work: Work, found: Inspection, tasks: list[Task], reply: str) -> dict[str, Any] | str:
    """Write the spec and the records, and say what the commit will be, or why there is none."""
    if len(tasks) > _MOST:
        return f"the agent named {len(tasks)} tasks, and a story has {_MOST} at most: split it"
    if found.changed or found.commits:  # it was asked to change nothing
        name, _ = work.save(found, work.step.visit)
        work.go_back(found)
        found.head, found.commits, found.changed = work.baseline.head, [], []
        found.notes.append(f"changed files while it planned; they were put back, and are kept in {name}")
    title = f"Tasks of {work.title.removesuffix(_PLANNING)}"
    number, place = _place(work.step.documents, title, work.group, tasks)
    text = planned_text.compose(number, title, work.group, tasks)
    if not planned_text.is_faithful(text, number, work.group, tasks):
        return UNCLEAR
    work.write_document(text, place)
    ids = ", ".join(f"{number}.{at}" for at in range(1, len(tasks) + 1))
    shown = work.step.documents.shown(place)
    told = session_log.told(markers.without(reply))
    ended = f"Planned: {ids} in {shown}, proposed."
    work.write_log({"Summary": told.get("Summary", "")[:2000]}, [one.raw for one in work.queue_before()], found, ended)
    work.write_progress(f"**{work.title}**\n\nProposed {ids} in {shown}.", "skipped (a plan)")
    entry = work.entry(PLANNED, found)
    given = finishing.committed(work, found, {}, entry, f"docs: propose tasks ({work.group})")
    return given if isinstance(given, dict) else "a hook of the project rejects the commit"


def _place(found: Documents, title: str, story: str, tasks: Sequence[Task]) -> tuple[str, str]:
    """The number of a new group, and its spec; after a kill, the one that was written before it."""
    name = f"{story.lower()}.md"
    known = spec_files.read(found)
    for one in known:
        number = f"{one.area}.{one.group}"
        if one.name == f"{number}-{name}" and one.text == planned_text.compose(number, title, story, tasks):
            return number, one.shown
    areas = spec_files.areas(found)
    ids = [tuple(map(int, task_spec.group(task.id).split("."))) for spec in known for task in spec.tasks]
    area = next((number for folder, number in sorted(areas.items()) if folder == f"{number}-{_FOLDER}"), 0)
    area = area or 1 + max([0, *areas.values(), *(id[0] for id in ids)])
    used = [*(one.group for one in known if one.area == area), *(id[1] for id in ids if id[0] == area)]
    group = 1 + max(used, default=0)
    while os.path.lexists(found.path(path := os.path.join(SPECS, f"{area}-{_FOLDER}", f"{area}.{group}-{name}"))):
        group += 1  # something that is not read as a spec
    return f"{area}.{group}", path
