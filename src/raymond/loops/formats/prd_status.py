"""The status of the stories of a PRD: docs/prd-status.json, in which others may keep fields of their own."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from raymond import durations
from raymond.language.check import Check
from raymond.loops.formats import state_file
from raymond.loops.formats.prd import Story, StoryCheck
from raymond.loops.formats.state_file import Broken

Status: TypeAlias = dict[str, Any]
Result: TypeAlias = Literal["passed", "failed", "pending", "imported"]
VERSION = 1
REMOVED = "removed"
"""The field of a story that the PRD does not have any more."""
_ORDER = ("version", "lastUpdated", "prdFile", "stories", "statistics")
_OF_STORY = ("id", "title", "passes", "lastVerified", "verification", "implementedBy", "history")
_OF_CHECK = ("type", "command", "expected", "timeout", "criteria", "checks")
_TYPES: dict[str, tuple[type, str]] = {
    "title": (str, "a text"),
    "passes": (bool, "true or false"),
    "verification": (dict, "an object"),
    "implementedBy": (list, "a list"),
    "history": (list, "a list"),
}


def empty(prd_file: str) -> Status:
    """The status of a PRD of which nothing is known."""
    return {"version": VERSION, "lastUpdated": None, "prdFile": prd_file, "stories": [], "statistics": {}}


def read(text: str | bytes) -> Status:
    """The fields of a status file, whoever wrote them; `Broken` says what is wrong, and where."""
    status = state_file.read(text)
    stories = status.setdefault("stories", [])
    if not isinstance(stories, list):
        raise Broken("`stories` is not a list")
    if not isinstance(status.setdefault("statistics", {}), dict):
        raise Broken("`statistics` is not an object")
    places: dict[str, int] = {}
    for at, story in enumerate(stories):
        id = _check(story, f"stories[{at}]")
        if id in places:
            raise Broken(f"`stories[{places[id]}]` and `stories[{at}]` are both {id}")
        places[id] = at
    return status


def _check(story: Any, place: str) -> str:
    """Refuse what is not a story; its id."""
    if not isinstance(story, dict):
        raise Broken(f"`{place}` is not an object")
    id = story.get("id")
    if not isinstance(id, str) or not id:
        raise Broken(f"`{place}.id` is not a text")
    for name, (kind, what) in _TYPES.items():
        # Others leave out what they do not know, or write null.
        if story.get(name) is not None and not isinstance(story[name], kind):
            raise Broken(f"`{place}.{name}` is not {what}")
    for name, wanted, what in (("history", dict, "an object"), ("implementedBy", str, "a text")):
        for at, one in enumerate(story.get(name) or ()):
            if not isinstance(one, wanted):
                raise Broken(f"`{place}.{name}[{at}]` is not {what}")
    return id


def write(status: Status) -> str:
    """The text of a status file."""
    text = json.dumps(_ordered(status, _ORDER), ensure_ascii=False, indent=2, allow_nan=False)
    return text.encode("utf-8", "replace").decode() + "\n"


def _ordered(fields: Mapping[str, Any], order: Iterable[str]) -> dict[str, Any]:
    return {name: fields[name] for name in dict.fromkeys((*order, *fields)) if name in fields}


def story(status: Status, id: str) -> dict[str, Any] | None:
    """The fields of a story."""
    found: Iterable[dict[str, Any]] = status["stories"]
    return next((one for one in found if one["id"] == id), None)


# Changes: each gives a new status, and keeps what it does not know


def merged(
    status: Status, stories: Sequence[Story], links: Mapping[str, Sequence[str]] | None = None, date: str = ""
) -> Status:
    """The status for a PRD as it is now; `links` are the tasks of each story, as a person took them.

    Stories that are gone stay, marked as removed. One that passed does not any more if it is verified otherwise now.
    """
    before = {one["id"]: one for one in status["stories"]}
    now = {one.id: one for one in stories}
    entries = []
    for id, old in before.items():
        entries.append(_updated(old, now[id], links, date) if id in now else {**old, REMOVED: True})
    entries += [_updated({"id": one.id}, one, links, date) for one in stories if one.id not in before]
    changed = {**status, "stories": entries}
    changed = with_statistics(changed)
    if date and changed != status:
        changed["lastUpdated"] = date
    return changed


def _updated(old: dict[str, Any], story: Story, links: Mapping[str, Sequence[str]] | None, date: str) -> dict[str, Any]:
    tasks = (
        list(story.implemented_by or old.get("implementedBy") or ()) if links is None else [*links.get(story.id, ())]
    )
    check = verification(story.check(has_tasks=bool(tasks)), old.get("verification"))
    passes = old.get("passes") is True
    history = list(old.get("history") or ())
    reason = _undone(old, story, check, tasks) if passes else ""
    if reason:
        history.append({"date": date, "result": "pending", "notes": reason})
    known = {
        "id": story.id,
        "title": story.title,
        "passes": passes and not reason,
        "lastVerified": old.get("lastVerified"),
        "verification": check,
        "implementedBy": tasks,
        "history": history,
    }
    kept = {name: value for name, value in old.items() if name not in (REMOVED, "problem")}
    more = {"problem": story.problem} if story.problem else {}
    return _ordered({**kept, **known, **more}, _OF_STORY)


def _undone(old: dict[str, Any], story: Story, check: dict[str, Any], tasks: list[str]) -> str:
    """Why a story that passed does not pass any more; nothing if it does."""
    if story.problem:
        return f"it cannot be verified: {story.problem}"
    if _core(old.get("verification") or {}) != _core(check):
        return "its verification changed"
    added = [one for one in tasks if one not in (old.get("implementedBy") or ())]
    if added and "tasks" in (check["type"], *(one.get("type") for one in check.get("checks", ()))):
        return f"it has more tasks now: {', '.join(added)}"
    return ""


def _core(check: Mapping[str, Any]) -> dict[str, Any]:
    """What of a verification decides whether it is still the same."""
    found = {name: check[name] for name in _OF_CHECK if check.get(name) not in (None, [], "")}
    if found.get("type") == "command":
        found["expected"] = str(found.get("expected", 0))
    inner = found.get("checks")
    if isinstance(inner, list):
        found["checks"] = [_core(one) if isinstance(one, dict) else one for one in inner]
    return found


def verification(check: StoryCheck, before: Any = None) -> dict[str, Any]:
    """A check as the file has it, with the fields of others that it had before."""
    found: dict[str, Any] = {"type": check.kind}
    for one in check.checks:
        found |= {"command": one.run, "expected": _expected(one)}
        found |= {"timeout": durations.written(one.timeout)} if one.timeout else {}
    if check.kind == "manual":
        found["criteria"] = list(check.criteria)
    if check.parts:
        found["checks"] = [verification(part) for part in check.parts]
    kept = {name: value for name, value in before.items() if name not in _OF_CHECK} if isinstance(before, dict) else {}
    return {**found, **kept}


def _expected(check: Check) -> int | str:
    if check.contains:
        return f'output contains "{check.contains}"'
    return f"output matches /{check.matches}/" if check.matches else check.exit


def recorded(status: Status, id: str, result: Result, date: str, notes: str = "") -> Status:
    """The status after a story was verified; recording the same again changes nothing."""
    old = story(status, id)
    if old is None:
        raise Broken(f"it has no story {id}")
    history = old.get("history") or []
    if any((one.get("date"), one.get("result"), one.get("notes")) == (date, result, notes) for one in history):
        return status
    new = {**old, "history": [*history, {"date": date, "result": result, "notes": notes}]}
    if result == "passed":
        new |= {"passes": True, "lastVerified": date}
    elif result == "failed":
        new["passes"] = False
    entries = [new if one is old else one for one in status["stories"]]
    return with_statistics({**status, "lastUpdated": date, "stories": entries})


def state(story: Mapping[str, Any]) -> str:
    """Whether a story has `passed` or `failed`, or is `pending`."""
    if story.get("passes") is True:
        return "passed"
    history = story.get("history") or ()
    last = history[-1].get("result") if history else ""
    return "failed" if last == "failed" else "pending"


def with_statistics(status: Status) -> Status:
    """The status with its numbers; stories that were removed do not count."""
    states = [state(one) for one in status["stories"] if not one.get(REMOVED)]
    numbers = {"total": len(states), **{name: states.count(name) for name in ("passed", "failed", "pending")}}
    before = status.get("statistics")
    return {**status, "statistics": {**(before if isinstance(before, dict) else {}), **numbers}}
