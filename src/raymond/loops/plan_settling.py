"""What specs and the status of stories say once a person has decided about a task or a story that was set aside."""

from collections.abc import Callable
from datetime import UTC, datetime

from raymond.loops.documents import PRD_STATUS
from raymond.loops.formats import foreign_text, prd_status, task_edit, task_spec
from raymond.loops.formats.state_file import Broken
from raymond.loops.ledger import Entry

Read = Callable[[str], str]


def settled(entry: Entry, read: Read, again: str | None, when: datetime) -> dict[str, str]:
    """The documents with their new texts: the item is done, or with a reason to be done `again`."""
    if entry.key == entry.group:
        return _of_story(entry, read, again, when)
    if not entry.place or entry.key not in {one.id for one in task_spec.read(read(entry.place)).tasks}:
        return {}
    text = read(entry.place)
    if again is None:
        return {entry.place: task_edit.passed(text, entry.key, f"{when:%Y-%m-%d}", entry.check or "accepted")}
    reason = foreign_text.cut(f"rejected by a person: {again}".rstrip(": "), 300)
    stamp = f"{when.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return {entry.place: task_edit.failed(text, entry.key, stamp, entry.check, reason, "", entry.attempts)}


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
