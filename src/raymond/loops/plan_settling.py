"""What specs and the status of stories say once a person has decided about a task or a story that was set aside."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from raymond.loops import task_items
from raymond.loops.documents import PRD_STATUS
from raymond.loops.formats import foreign_text, prd_status, task_edit, task_spec
from raymond.loops.formats.state_file import Broken
from raymond.loops.ledger import Entry
from raymond.loops.specs import Placed

Read = Callable[[str], str]


def settled(entry: Entry, read: Read, specs: Iterable[str], again: str | None, when: datetime) -> dict[str, str]:
    """The documents with their new texts: the item is done, or with a reason to be done `again`.

    `specs` are the names of all specs: the tasks of a story may stand in any of them.
    """
    if entry.key == entry.group:
        return _of_story(entry, read, again, when) | (_verified(entry, read, specs, when) if again is None else {})
    if again is None:
        return _verified(entry, read, specs, when)
    if not entry.place or not _has_once(read(entry.place), entry.key):
        return {}
    text = read(entry.place)
    reason = foreign_text.cut(f"rejected by a person: {again}".rstrip(": "), 300)
    stamp = f"{when.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return {entry.place: task_edit.failed(text, entry.key, stamp, entry.check, reason, "", entry.attempts)}


def _verified(entry: Entry, read: Read, specs: Iterable[str], when: datetime) -> dict[str, str]:
    """The specs in which the tasks that are done with the item are marked, and those that they repair."""
    texts = {place: read(place) for place in specs}
    placed = [Placed(task, place) for place, text in texts.items() for task in task_spec.read(text).tasks]
    by_id = {one.task.id: one for one in placed}
    changed: dict[str, str] = {}
    for id in entry.tasks or (entry.key,):
        for one in (by_id[id], *task_items.repaired(placed, id)) if id in by_id else ():
            text = changed.get(one.place, texts[one.place])
            if _has_once(text, one.task.id):
                check = one.task.check.run if one.task.check else "accepted"
                changed[one.place] = task_edit.passed(text, one.task.id, f"{when:%Y-%m-%d}", check)
    return changed


def _has_once(text: str, id: str) -> bool:
    return [one.id for one in task_spec.read(text).tasks].count(id) == 1


def _of_story(entry: Entry, read: Read, again: str | None, when: datetime) -> dict[str, str]:
    try:
        status = prd_status.read(read(PRD_STATUS) or "{}")
    except Broken:
        return {}
    if prd_status.story(status, entry.key) is None:
        return {}
    date = f"{when.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    if again is None:
        changed = prd_status.recorded(status, entry.key, "passed", date, "accepted by a person")
    else:
        notes = foreign_text.cut(f"rejected by a person: {again}".rstrip(": "), 200)
        changed = prd_status.recorded(status, entry.key, "failed", date, notes)
    return {PRD_STATUS: prd_status.write(changed)}
