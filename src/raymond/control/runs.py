"""Which runs there are, which one a name means, and how each looks from outside."""

import os
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from raymond.errors import JournalError, RunNotFound, UsageError
from raymond.faces import documents
from raymond.machine.run import Run
from raymond.store import journal, lock
from raymond.store import project as projects
from raymond.store.project import Project
from raymond.views.status import run_status

INTERRUPTED = "interrupted"
"""The status of a run that should be running and that no process drives."""


class RunRow(Struct, frozen=True, kw_only=True):
    """A run in one row of `list`; its JSON is the row of `list --json`."""

    workflow_id: str
    project: str
    status: str
    driven: bool
    agents: int = 0
    cost_usd: float = 0.0
    cost_is_estimated: bool = False
    started_at: str | None = None
    updated_at: str | None = None
    error: str | None = None
    """Why it cannot be read; its status is then `unreadable`."""


class Seen(Struct, frozen=True):
    """A run as it looks from outside."""

    run: Run
    status: str
    pid: int
    """The process that drives it; 0 when none does."""


# --- which run


def here() -> Project:
    """The project of the current directory."""
    found = projects.find(os.getcwd())
    if found is None:
        raise _nothing_here()
    return found


def named(given: str, *, changes: bool = False) -> tuple[Project, str]:
    """The run `given` names. Without a name it is the latest one; to be changed it must be the only live one."""
    home = here()
    if given:
        return home, home.resolve(given)
    ids = home.ids()
    if not ids:
        raise _nothing_here()
    if changes and len(ids) > 1:
        live = [id for id in ids if _is_live(home, id)]
        if len(live) > 1:
            raise UsageError(f"{len(live)} runs are live", hint=f"say which: {', '.join(live[:5])}")
        return home, live[0] if live else ids[0]
    return home, ids[0]


def _nothing_here() -> RunNotFound:
    return RunNotFound("no run has been started here yet", hint="raymond run PATH starts one")


def _is_live(project: Project, id: str) -> bool:
    try:
        return not journal.read(project, id).run.final_status
    except JournalError:
        return False  # an unreadable run does not count; naming it shows what is wrong


# --- how it looks


def status_of(status: str, *, driven: bool) -> str:
    """A run's own `status` as seen from outside: one that should be running and has no driver was interrupted."""
    return INTERRUPTED if status == "running" and not driven else status


def look(project: Project, id: str) -> Seen:
    """Run `id` now: folded from its journal, and who drives it."""
    run = journal.read(project, id).run
    holder = lock.holder(project.beside(id, "lock"))
    return Seen(run, status_of(run_status(run), driven=holder is not None), holder.pid if holder else 0)


def left(run: Run) -> str:
    """The status of a run that nobody drives any more."""
    return status_of(run_status(run), driven=False)


def rows(*, every: bool = False) -> list[RunRow]:
    """The runs of this project, or of `every` project of this person, the latest first."""
    home = projects.find(os.getcwd())
    homes = projects.known() if every else []
    if home and home.root not in [one.root for one in homes]:
        homes.insert(0, home)
    found = [row(one, id) for one in homes for id in one.ids()]
    return sorted(found, key=lambda one: one.started_at or "", reverse=True)


def row(project: Project, id: str) -> RunRow:
    """Run `id` in one row: from its state file while that is as new as the journal, else from the journal."""
    driven = lock.holder(project.beside(id, "lock")) is not None
    folder = os.path.dirname(project.root)
    try:
        found = _kept(project, id) or documents.document(journal.read(project, id).run)
    except JournalError as error:
        return RunRow(workflow_id=id, project=folder, status="unreadable", driven=driven, error=str(error))
    return RunRow(
        workflow_id=id,
        project=folder,
        driven=driven,
        status=status_of(found["status"], driven=driven),
        agents=1 + sum(found["fork_counters"].values()),
        cost_usd=found.get("total_cost_usd", 0.0),
        cost_is_estimated=found.get("cost_is_estimated", False),
        started_at=found.get("started_at"),
        updated_at=found.get("updated_at"),
    )


def _kept(project: Project, id: str) -> dict[str, Any] | None:
    try:
        with open(project.beside(id, "json"), "rb") as file:
            found = msgspec.json.decode(file.read(), type=dict[str, Any])
        return found if found.get("journal_bytes") == os.stat(project.journal(id)).st_size else None
    except (OSError, msgspec.DecodeError):
        return None


# --- which ones to resume after the machine died


def resumable(project: Project) -> Iterator[str | JournalError]:
    """The runs that were driven when the machine or their driver died, oldest first; what cannot be read, as error."""
    for id in reversed(project.ids()):
        try:
            seen = look(project, id)
        except JournalError as error:
            yield error
            continue
        if lock.holder(project.beside(id, "lock")) is None and (seen.status == INTERRUPTED or was_shut_down(seen.run)):
            yield id


def was_shut_down(run: Run) -> bool:
    """Whether the machine stopped it: an orderly shutdown sends SIGTERM, but whoever types Ctrl-C means it.

    Journals of earlier releases do not name the signal: such a run is left to its owner.
    """
    stopped = run.stop
    return (
        stopped is not None and stopped.kind == "signal" and not run.final_status and stopped.signal not in (0, _SIGINT)
    )


_SIGINT = 2
"""On every system; the module `signal` would only be imported for it."""
