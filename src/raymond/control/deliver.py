"""Bring a request to a run: to the process that drives it, or into its journal when nobody does."""

import os
from time import monotonic, sleep, time
from typing import Any, TypeAlias

from msgspec import Struct

from raymond.drivers.face import Face
from raymond.errors import RunBusy
from raymond.language.refusal import Refusal
from raymond.machine import requests
from raymond.machine.agent import RUNNING
from raymond.machine.events import Decision, Event, RequestTaken
from raymond.machine.evolve import apply
from raymond.machine.requests import Request
from raymond.machine.run import Run
from raymond.machine.workspace import Workspace
from raymond.store import inbox, journal, lock, sources
from raymond.store.journal import Folded
from raymond.store.project import Project

TAKEN_WITHIN = 3.0
"""Seconds to wait for the process that drives a run; it looks once a second."""


class Taken(Struct, frozen=True):
    """The process that drives the run has taken the request."""

    pid: int


class Left(Struct, frozen=True):
    """The request waits for the process that drives the run."""

    pid: int
    host: str = ""
    """The other machine it is on; empty for this one."""


class Journaled(Struct, frozen=True):
    """Nobody drives the run: these decisions follow from the request and are in the journal."""

    decisions: list[Decision]


Delivery: TypeAlias = Taken | Left | Journaled | Refusal
"""A refusal means that nothing was written."""


def deliver(
    project: Project,
    id: str,
    request: Request,
    *,
    force: bool = False,
    face: Face | None = None,
    within: float = TAKEN_WITHIN,
) -> Delivery:
    """Give `request` to whoever drives the run, or journal it here and tell `face`."""
    folded = journal.read(project, id)
    workspace = sources.place(project, folded.run)
    path = project.beside(id, "lock")
    if lock.holder(path) is not None:
        problem = requests.problem(folded.run, workspace, request)
        if problem:
            return problem
    try:
        held = lock.take(path, run=id, force=force)
    except RunBusy as busy:
        return _leave(project, id, request, busy, within) or deliver(project, id, request, force=force, face=face)
    try:
        return _journal(project, id, journal.read(project, id), workspace, request, face)
    finally:
        held.release()


def _leave(project: Project, id: str, request: Request, busy: RunBusy, within: float) -> Taken | Left | Refusal | None:
    """Leave it for the process that drives the run; None when that process ended without looking."""
    path, locked = inbox.leave(project.beside(id, "inbox"), request), project.beside(id, "lock")
    if _was_taken(path, locked, within):
        return _problem(project, id, request) or Taken(busy.pid)
    if busy.host not in ("", os.uname().nodename):
        return Left(busy.pid, busy.host)
    if lock.holder(locked) is None:
        inbox.remove(path)
        return None
    return Left(busy.pid)


def _problem(project: Project, id: str, request: Request) -> Refusal | None:
    """Why the process that took `request` refused it: another request may have come first."""
    for decision in reversed(journal.decisions(project, id)):
        for event in decision.events:
            if isinstance(event, RequestTaken) and event.request == request.id:
                return Refusal("too_late", event.problem) if event.problem else None
    return None


def _was_taken(path: str, locked: str, within: float) -> bool:
    until = monotonic() + within
    while os.path.exists(path):
        if monotonic() > until or lock.holder(locked) is None:
            return False
        sleep(0.05)
    return True


def _journal(
    project: Project, id: str, folded: Folded, workspace: Workspace, request: Request, face: Face | None
) -> Journaled | Refusal:
    """Decide and write it here; the lock is held."""
    run = folded.run
    if face:
        face.on_decisions(run, [])
    decisions: list[Decision] = []

    def commit(events: list[Event]) -> None:
        if events:
            decisions.append(Decision(seq=run.seq + 1, time=round(time(), 3), events=events))
            apply(run, decisions[-1])

    agent = run.agents.get(request.agent)
    if request.kind == "pause" and agent and agent.status == RUNNING:
        # Its process may live on: the next driver finds it, or ends it.
        return Refusal("not_driven", f"no process drives {id}: {request.agent} was interrupted")
    # The driver is gone, and with it the step that the journal still calls running.
    commit(requests.cut(run, request.agent, _cost(project, run, workspace, request.agent)))
    problem = requests.problem(run, workspace, request)
    if problem:
        return problem
    commit(requests.take(run, workspace, request))
    book = journal.Journal(project, id, folded.size)
    for decision in decisions:
        book.append(decision)
    book.close()
    if face:
        face.on_decisions(run, decisions)
        face.refresh(run)
    return Journaled(decisions)


def _cost(project: Project, run: Run, workspace: Workspace, name: str) -> dict[str, Any]:
    """What the running turn of an agent has cost so far, by its spool."""
    from raymond.backends import Direct, registry
    from raymond.control import config
    from raymond.machine.agent import RUNNING, SCRIPTS, backend_of
    from raymond.machine.decide import cost_of
    from raymond.steps import spool

    agent = run.agents.get(name)
    if not agent or agent.status != RUNNING or agent.pool == SCRIPTS:
        return {}
    backends = registry.make(project, run, workspace, config.load(project.root)["backends"])
    backend = backends[backend_of(agent.pool)]
    if isinstance(backend, Direct):
        return {}
    turn = spool.turn_of(run, workspace, agent, project.path("spool", run.start.workflow_id))
    return cost_of(spool.spent(backend, turn))
