"""Tasks that an agent proposes for a story: read from its message, written into a spec of their own."""

import os
from collections.abc import Sequence
from time import time

from raymond.loops import failing, markers, outcome, spec_files
from raymond.loops.documents import SPECS, Documents
from raymond.loops.formats import records, task_edit, task_spec
from raymond.loops.formats.task_spec import Task
from raymond.loops.item_run import ItemRun
from raymond.loops.ledger import PLANNED

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


def prepare(run: ItemRun, reply: str) -> tuple[str, str]:
    """The state in which a plan goes on, and what that is given."""
    tasks = read(reply)
    if not tasks:
        return "FAILED.py", f"{failing.NO_PLAN}{NONE}"
    if len(tasks) > _MOST:
        what = f"the agent named {len(tasks)} tasks, and a story has {_MOST} at most: split it"
        return "FAILED.py", f"{failing.NO_PLAN}{what}"
    work = run.look()
    notes = list(work.notes)
    if work.changed:  # it was asked to change nothing
        name, _ = run.save(work.tree, run.step.visit)
        notes.append(f"changed files while it planned, which do not count; they are kept in {name}")
    item, documents = run.item, run.documents
    title = f"Tasks of {item.title.removesuffix(_PLANNING)}"
    number, place = _place(documents, title, item.group, tasks)
    text = task_edit.planned(number, title, item.group, tasks)
    if not task_edit.is_as_planned(text, number, item.group, tasks):
        return "FAILED.py", f"{failing.NO_PLAN}{UNCLEAR}"
    ids = ", ".join(f"{number}.{at}" for at in range(1, len(tasks) + 1))
    told = records.sections_of(markers.without(reply))
    ended = outcome.Outcome(
        verdict=PLANNED,
        notes=notes,
        told={"Summary": told.get("Summary", "")[:2000]},
        result=f"Proposed {ids} in {documents.shown(place)}.",
        plan={place: text},
        ended=round(time(), 3),
    )
    return "COMMIT.py", ended.write()


def _place(found: Documents, title: str, story: str, tasks: Sequence[Task]) -> tuple[str, str]:
    """The number of a new group, and its spec; after a kill, the one that was written before it."""
    name = f"{story.lower()}.md"
    known = spec_files.read(found)
    for one in known:
        number = f"{one.area}.{one.group}"
        if one.name == f"{number}-{name}" and one.text == task_edit.planned(number, title, story, tasks):
            return number, one.shown
    areas = spec_files.areas(found)
    ids = [tuple(map(int, task_spec.group(task.id).split("."))) for spec in known for task in spec.tasks]
    area = next((number for folder, number in sorted(areas.items()) if folder == f"{number}-{_FOLDER}"), 0)
    area = area or 1 + max([0, *areas.values(), *(id[0] for id in ids)])
    used = [*(one.group for one in known if one.area == area), *(id[1] for id in ids if id[0] == area)]
    group = 1 + max(used, default=0)
    folder = f"{area}-{_FOLDER}"
    there = found.names(SPECS, folder)
    while f"{area}.{group}-{name}" in there:
        group += 1  # something that is not read as a spec
    return f"{area}.{group}", os.path.join(SPECS, folder, f"{area}.{group}-{name}")
