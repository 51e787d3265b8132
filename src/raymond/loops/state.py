"""The state file of a loop, written from its ledger, and beside it the items that wait for a person."""

import contextlib
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from time import time
from typing import Any

from raymond.loops import documents
from raymond.loops.formats import state_file
from raymond.loops.formats.foreign_text import one_line
from raymond.loops.formats.state_file import CompletedItem, CompletedTask, FailedItem, FailedTask, Status
from raymond.loops.ledger import NO_CHANGE, PASSED, REJECTED, REVIEW, Decided, Entry, Ledger
from raymond.loops.settings import RALPH, STORIES, TASKS, Settings
from raymond.store.run_folder import SETTLED, RunFolder
from raymond.system.files import make_private

VERSION = 1

_DECIDED = "decided"
"""The file in the folder of the loop with the items that a person has decided about."""


def write(
    path: str,
    id: str,
    settings: Settings,
    ledger: Ledger,
    status: Status,
    snapshot: tuple[str, ...],
    *,
    pid: int,
    error: str = "",
) -> None:
    """Write a state file; what others have put into it stays. `error` says why the loop has failed."""
    before = contents_of(path)
    now = instant(time())
    began = before.get("startedAt") if before.get("workflow_id") == id else None
    known = _known(settings, ledger, status, snapshot, began or now, now)
    more = {"branch": settings.branch, "version": VERSION, "pid": pid, "host": os.uname().nodename, "workflow_id": id}
    before.pop("error", None)
    documents.write(path, state_file.write({**known, **({"error": error} if error else {}), **more}, before))


def note(path: str, id: str, settings: Settings, entry: Entry) -> None:
    """Write into a state file how an item has just ended; the next one that is written has the same."""
    before = contents_of(path)
    if before.get("workflow_id") != id:
        return
    now = instant(time())
    known = _known(settings, Ledger(entries=[entry]), "running", (), now, now)
    for name, ended in known.items():
        there = before.get(name)
        if name.startswith(("completed", "failed")) and isinstance(there, list) and isinstance(ended, list):
            before[name] = [*there, *(one for one in ended if one not in there)]
    before["lastUpdated"] = now
    left = before.get("queueSnapshot")
    if isinstance(left, list) and entry.is_done:
        before["queueSnapshot"] = [one for one in left if one != entry.title]
    documents.write(path, state_file.write({}, before))


def is_of(path: str, id: str) -> bool:
    """Whether a state file tells of this loop."""
    return contents_of(path).get("workflow_id") == id


def contents_of(path: str) -> dict[str, Any]:
    try:
        return state_file.read(documents.beginning(path) or "{}")
    except state_file.Broken:
        return {}


def _known(
    settings: Settings, ledger: Ledger, status: Status, snapshot: tuple[str, ...], began: str, now: str
) -> dict[str, object]:
    if settings.loop == RALPH:
        return state_file.known(state_file.RalphState(status, began, now, settings.most, ledger.sessions))
    if settings.loop == TASKS:
        return _of_tasks(settings, ledger, status, began, now)
    if settings.loop == STORIES:
        return _of_stories(settings, ledger, status, began, now)
    completed = [
        CompletedItem(
            title=one.title,
            sessionLog=one.log,
            verification="passed" if one.verification == "passed" else "skipped",
            duration=round(one.seconds * 1000),
            verdict=one.verdict,
        )
        for one in ledger.done
    ]
    failed = [
        FailedItem(title=one.title, error=one.error, sessionLog=one.log, verdict=one.verdict) for one in ledger.failed
    ]
    state = state_file.SessionState(
        status=status,
        startedAt=began,
        lastUpdated=now,
        maxSessions=settings.most,
        currentSession=ledger.sessions,
        sourceSession=os.path.join(settings.docs, documents.LOGS, settings.source),
        completedItems=tuple(completed),
        failedItems=tuple(failed),
        queueSnapshot=snapshot,
    )
    return state_file.known(state)


def _of_tasks(settings: Settings, ledger: Ledger, status: Status, began: str, now: str) -> dict[str, object]:
    state = state_file.TaskState(
        status=status,
        startedAt=began,
        lastUpdated=now,
        maxIterations=settings.most,
        currentIteration=ledger.sessions,
        currentTask=ledger.open.key if ledger.open else "",
        scope=state_file.Scope(area=settings.area, taskGroup=settings.task_group),
        completedTasks=_completed(ledger.done),
        failedTasks=_failed(ledger.failed),
    )
    return state_file.known(state)


def _of_stories(settings: Settings, ledger: Ledger, status: Status, began: str, now: str) -> dict[str, object]:
    """Tasks of stories are told like those of a task loop."""
    stories = [one for one in ledger.done if one.key == one.group]
    tasks = [one for one in ledger.done if one.key != one.group]
    opened = ledger.open
    state = state_file.StoryState(
        status=status,
        startedAt=began,
        lastUpdated=now,
        maxStories=settings.most,
        currentIteration=ledger.sessions,
        currentStory=opened.group if opened else "",
        currentTask=opened.key if opened and opened.key != opened.group else "",
        completedStories=_completed(stories),
        failedStories=_failed([one for one in ledger.failed if one.key == one.group]),
        completedTasks=_completed(tasks),
        failedTasks=_failed([one for one in ledger.failed if one.key != one.group]),
    )
    return state_file.known(state)


def _completed(entries: list[Entry]) -> tuple[CompletedTask, ...]:
    return tuple(
        CompletedTask(
            id=one.key,
            title=_bare(one),
            verified=one.verdict in (PASSED, NO_CHANGE),
            duration=round(one.seconds * 1000),
            verdict=one.verdict,
        )
        for one in entries
    )


def _bare(entry: Entry) -> str:
    """The title without the id."""
    return entry.title.removeprefix(entry.key).lstrip(".: ")


def _failed(entries: list[Entry]) -> tuple[FailedTask, ...]:
    return tuple(
        FailedTask(id=one.key, title=_bare(one), error=one.error, attempts=one.attempts, verdict=one.verdict)
        for one in entries
    )


def instant(when: float) -> str:
    """A time as state files have it."""
    return f"{datetime.fromtimestamp(when, UTC):%Y-%m-%dT%H:%M:%SZ}"


# Items that wait for a person


def waiting_of(ledger: Ledger) -> list[Entry]:
    """Those of a loop."""
    return [one for one in ledger.failed if one.verdict == REVIEW and one.kept]


def note_waiting(folder: RunFolder, ledger: Ledger, entries: Iterable[Entry]) -> None:
    """Note them in the folder of the run, or that a person has decided about all that did not count."""
    verdicts = {one.verdict for one in ledger.failed}
    text = SETTLED if verdicts == {REJECTED} else "".join(f"{one.number}\n" for one in entries)
    if text or os.path.exists(folder.set_aside):
        _write_waiting(folder.set_aside, text)


def decided(folder: RunFolder) -> dict[str, Decided]:
    """What a person has decided, by the keys of items."""
    lines = (line.split("\t") for line in documents.read(_path_of_waiting(folder)).split("\n") if line)
    return {key: Decided(commit, reason) for key, commit, reason in lines}


def decide(folder: RunFolder, key: str, commit: str, reason: str = "") -> None:
    """Write down that an item waits no longer."""
    _write_waiting(
        _path_of_waiting(folder), documents.read(_path_of_waiting(folder)) + f"{key}\t{commit}\t{one_line(reason)}\n"
    )


def revise_waiting(folder: RunFolder, ledger: Ledger) -> None:
    """Write down what a loop that is over has come to since a person decided."""
    text = ledger.write()
    if decided(folder) and documents.read(folder.revised) != text:
        _write_waiting(folder.revised, text)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(folder.state)  # it is made of the journal alone


def _path_of_waiting(folder: RunFolder) -> str:
    return os.path.join(os.path.dirname(folder.set_aside), _DECIDED)


def _write_waiting(path: str, text: str) -> None:
    make_private(os.path.dirname(path))
    documents.write(path, text)
