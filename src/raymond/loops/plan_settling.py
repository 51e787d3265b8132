"""What specs and the PRD say once a person has decided about a task or a story that was set aside."""

from collections.abc import Callable
from datetime import datetime

from raymond.loops.formats import foreign_text, task_edit, task_spec
from raymond.loops.ledger import Entry

Read = Callable[[str], str]


def settled(entry: Entry, read: Read, again: str | None, when: datetime) -> dict[str, str]:
    """The documents with their new texts."""
    if not entry.place or entry.key not in entry.tasks:
        return {}
    text = read(entry.place)
    if entry.key not in {one.id for one in task_spec.read(text).tasks}:
        return {}
    if again is None:
        return {entry.place: task_edit.passed(text, entry.key, f"{when:%Y-%m-%d}", entry.check or "accepted")}
    reason = foreign_text.cut(f"rejected: {again}" if again.strip() else "rejected", 300)
    failed = task_edit.failed(text, entry.key, f"{when:%Y-%m-%dT%H:%M:%S%z}", entry.check, reason, "", entry.attempts)
    return {entry.place: failed}
