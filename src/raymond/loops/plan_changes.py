"""What an agent changed in a document that says what is to be done, and what it proposes by that."""

from raymond.loops.documents import PRD, PRD_STATUS
from raymond.loops.formats import records, task_spec
from raymond.loops.formats.foreign_text import inline
from raymond.loops.formats.task_spec import Task

_ADDED = '"{title}" was added to {path} while an agent worked; it counts as proposed'


def between(old: str, new: str, own: str, path: str) -> tuple[list[str], list[str]]:
    """What is to be noted, and raw items that are proposed; an agent may mark its own task, `own`, as done."""
    if path.rpartition("/")[2] in (PRD, PRD_STATUS):
        return [f"changed {path}, which says what is to be done; it was put back"], []
    before = {one.id: one for one in task_spec.read(old).tasks}
    now = {one.id: one for one in task_spec.read(new).tasks}
    added = [one for id, one in now.items() if id not in before]
    notes = [_ADDED.format(title=f"{one.id}. {one.title}", path=path) for one in added]
    for id, one in before.items():
        if id not in now:
            notes += [] if id == own else [f"removed task {id} from {path}, which does not count"]
        elif check(now[id]) != check(one):
            notes.append(f"changed the check of task {id} in {path}, which does not count")
        elif id != own and _kept(now[id]) != _kept(one):
            notes.append(f"changed task {id} in {path}, which does not count")
    return notes, [_item(one) for one in added]


def check(task: Task) -> tuple[object, ...]:
    """All that decides whether a task is verified."""
    return task.check, task.is_manual, task.criteria, task.problem, task.retries, task.seal, task.may


def _kept(task: Task) -> tuple[object, ...]:
    return task.title, task.status, task.verified, task.implements, task.body


def _item(task: Task) -> str:
    check = f"[VERIFY: `{inline(task.check.run)}`] " if task.check and "`" not in task.check.run else ""
    return f"- {records.PROPOSED} {check}{task.id}. {inline(task.title)}"
