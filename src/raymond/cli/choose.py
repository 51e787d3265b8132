"""Which run a command means, and how a request reaches it."""

import os
from time import time
from typing import TYPE_CHECKING

from raymond import journal
from raymond.errors import JournalError, RunBusy, RunNotFound, UsageError
from raymond.events import Decision
from raymond.project import Project, find

if TYPE_CHECKING:
    from raymond.requests import Request


def run(given: str, *, changes: bool = False) -> tuple[Project, str]:
    """The run `given` names; without a name the latest one, which must be the only live one to be changed."""
    home = project()
    if given:
        return home, home.resolve(given)
    ids = home.ids()
    if not ids:
        raise RunNotFound("no run was started here yet", hint="raymond run PATH starts one")
    if changes and len(ids) > 1:
        live = [id for id in ids if _is_live(home, id)]
        if len(live) > 1:
            raise UsageError(f"{len(live)} runs are live", hint=f"say which: {', '.join(live[:5])}")
        return home, live[0] if live else ids[0]
    return home, ids[0]


def project() -> Project:
    """The project here."""
    found = find(os.getcwd())
    if found is None:
        raise RunNotFound("no run was started here yet", hint="raymond run PATH starts one")
    return found


def _is_live(project: Project, id: str) -> bool:
    try:
        return not journal.read(project, id).run.ended
    except JournalError:
        return False  # one that cannot be read stands in nobody's way; named, it says what is wrong


def hand_over(project: Project, id: str, request: "Request", *, force: bool = False) -> str | None:
    """Give `request` to whoever drives the run, or journal it here; why it was refused."""
    from raymond import console, inbox, launch, lock, requests

    reading = journal.read(project, id)
    placed = launch.place(project, reading.run)
    problem = requests.problem(reading.run, placed, request)
    if problem:
        raise UsageError(problem.reason, hint=problem.hint)
    try:
        held = lock.take(project.beside(id, "lock"), force=force)
    except RunBusy as busy:
        inbox.leave(project.beside(id, "inbox"), request)
        if busy.host and busy.host != os.uname().nodename:
            gone = f"when {busy.host} is gone: raymond resume {id} --force"
            return f"left for process {busy.pid} on {busy.host}, which drives {id}; {gone}"
        return f"left for process {busy.pid}, which drives {id}"
    try:
        reading = journal.read(project, id)
        book = journal.Journal(project, id, reading.size)
        events = requests.take(reading.run, placed, request)
        now = round(time(), 3)
        if events:
            decision = Decision(seq=reading.run.seq + 1, time=now, events=events)
            book.append(decision)
            lines = console.Lines()
            lines.decided(reading.run, [decision])
            lines.refresh()
        book.close()
    finally:
        held.release()
    return None
