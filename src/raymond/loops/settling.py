"""What the documents of a loop say once a person has decided about an item that was set aside."""

import os
from datetime import UTC, datetime

from raymond.loops import outcome
from raymond.loops.documents import LOGS, Documents
from raymond.loops.formats import queue
from raymond.loops.ledger import Entry
from raymond.loops.loop_run import LoopRun
from raymond.loops.settings import SESSION


def settled(loop: LoopRun, entry: Entry, found: Documents, now: int, again: str | None = None) -> dict[str, str]:
    """The documents that change, with their new texts: the item is done, or with a reason to be done `again`."""
    texts = _of_queue(entry, found, again) if loop.loop == SESSION else {}
    if loop.loop != SESSION or entry.tasks:
        texts |= _of_plans(entry, found, now, again)
    return {place: text for place, text in texts.items() if text != found.read(place)}


def _of_queue(entry: Entry, found: Documents, again: str | None) -> dict[str, str]:
    name = found.newest()
    return {os.path.join(LOGS, name): _without(found.read(LOGS, name), entry.key, again)} if name else {}


def _without(text: str, key: str, again: str | None) -> str:
    """A session log in which the item no longer waits."""
    for item in queue.read(text).items:
        if queue.key(item) == key and item.verification.kind == "blocked":
            block = "" if again is None else _unblocked(item.raw, again)
            return text[: item.start] + block + text[item.end :]
    return text


def _unblocked(raw: str, reason: str) -> str:
    told = f"   It was rejected: {' '.join(reason.split())}\n" if reason.strip() else ""
    block = queue.unmarked(raw, f"[BLOCKED: {outcome.WAITS}")
    return f"{block}{told}" if block.endswith("\n") else f"{block}\n{told}"


def _of_plans(entry: Entry, found: Documents, now: int, again: str | None) -> dict[str, str]:
    from raymond.loops import plan_settling, spec_files

    specs = spec_files.paths(found)
    return plan_settling.settled(entry, found.read, specs, again, datetime.fromtimestamp(now, UTC).astimezone())
