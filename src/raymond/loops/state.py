"""The state file of a loop, written from its ledger."""

import os
from datetime import UTC, datetime
from time import time

from raymond.loops import documents
from raymond.loops.formats import state_file
from raymond.loops.formats.state_file import CompletedItem, FailedItem, Status
from raymond.loops.ledger import Ledger
from raymond.loops.settings import RALPH, Settings

VERSION = 1


def write(
    path: str, id: str, settings: Settings, ledger: Ledger, status: Status, snapshot: tuple[str, ...], *, pid: int
) -> None:
    """Write a state file; what others have put into it stays."""
    try:
        before = state_file.read(documents.beginning(path) or "{}")
    except state_file.Broken:
        before = {}
    now = instant(time())
    began = before.get("startedAt") if before.get("workflow_id") == id else None
    known = _known(settings, ledger, status, snapshot, began or now, now)
    more = {"version": VERSION, "pid": pid, "host": os.uname().nodename, "workflow_id": id}
    documents.write(path, state_file.write({**known, **more}, before))


def _known(
    settings: Settings, ledger: Ledger, status: Status, snapshot: tuple[str, ...], began: str, now: str
) -> dict[str, object]:
    if settings.loop == RALPH:
        return state_file.known(state_file.RalphState(status, began, now, settings.most, ledger.sessions))
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
        sourceSession=settings.source,
        completedItems=tuple(completed),
        failedItems=tuple(failed),
        queueSnapshot=snapshot,
    )
    return state_file.known(state)


def instant(when: float) -> str:
    """A time as state files have it."""
    return f"{datetime.fromtimestamp(when, UTC):%Y-%m-%dT%H:%M:%SZ}"
