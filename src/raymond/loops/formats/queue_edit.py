"""A person's edit of a queue, applied to the queue as it is by now: what both sides changed stays."""

from collections.abc import Collection

from raymond.loops.formats import queue
from raymond.loops.formats.item import Item


def applied(before: str, after: str, now: str, done: Collection[str] = ()) -> str:
    """The log `now` with what a person changed between `before` and `after`; items in `done` are not added again."""
    old, new, there = _items(before), _items(after), _items(now)
    added = {key for key in new if key not in old and key not in done}
    stays = {key for key in there if key in new or key not in old}
    blocks = {key: there[key].raw for key in stays}
    for key in added | {key for key in stays & new.keys() if key in old and new[key].raw != old[key].raw}:
        blocks[key] = _both(new[key], there.get(key))
    kept = [key for key in new if key in old]
    is_moved = kept != [key for key in old if key in new]
    order = _woven(list(new), list(there), blocks) if is_moved else _woven(list(there), list(new), blocks)
    return queue.rewritten(now, [blocks[key] for key in order])


def _items(text: str) -> dict[str, Item]:
    found: dict[str, Item] = {}
    for one in queue.read(text).items:
        found.setdefault(queue.key(one), one)
    return found


def _both(typed: Item, there: Item | None) -> str:
    """An item as a person wrote it, blocked if it has been blocked meanwhile."""
    if there is None or there.verification.kind != "blocked" or typed.verification.kind == "blocked":
        return typed.raw
    return queue.marked(typed.raw, f"[BLOCKED: {there.verification.reason}]")


def _woven(first: list[str], second: list[str], wanted: Collection[str]) -> list[str]:
    """The wanted keys in the order of the first list; one that is only in the second stands beside its neighbours."""
    found = [key for key in first if key in wanted]
    known = set(found)
    for at, key in enumerate(second):
        if key in known or key not in wanted:
            continue
        before = next((one for one in reversed(second[:at]) if one in known), None)
        after = next((one for one in second[at:] if one in known), None)
        if before or not at:
            found.insert(found.index(before) + 1 if before else 0, key)
        else:  # those before it are gone
            found.insert(found.index(after) if after else len(found), key)
        known.add(key)
    return found
