"""Which run a command means, and how a request reaches it."""

import os
from time import monotonic, sleep, time
from typing import TYPE_CHECKING, Any

from raymond.errors import JournalError, RunBusy, RunNotFound, UsageError
from raymond.machine.events import Decision
from raymond.machine.evolve import apply
from raymond.store import journal
from raymond.store.project import Project, find

if TYPE_CHECKING:
    from raymond.language.refusal import Refusal
    from raymond.machine.events import Event
    from raymond.machine.requests import Request
    from raymond.machine.run import Run
    from raymond.machine.workspace import Workspace


TAKEN_WITHIN = 3.0
"""Seconds to wait for the process that drives a run; it looks once a second."""


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


def _refuse(problem: "Refusal | None") -> None:
    if problem:
        raise UsageError(problem.reason, hint=problem.hint)


def _taken(path: str, locked: str) -> bool:
    """Wait a moment for the process that drives the run; whether it has taken the request."""
    from raymond.store import lock

    until = monotonic() + TAKEN_WITHIN
    while os.path.exists(path):
        if monotonic() > until or lock.holder(locked) is None:
            return False
        sleep(0.05)
    return True


def _spent(project: Project, run: "Run", workspace: "Workspace", name: str) -> dict[str, Any]:
    """What the running turn of an agent has cost, as its spool tells."""
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


def _is_live(project: Project, id: str) -> bool:
    try:
        return not journal.read(project, id).run.ended
    except JournalError:
        return False  # one that cannot be read stands in nobody's way; named, it says what is wrong


def hand_over(project: Project, id: str, request: "Request", *, force: bool = False) -> str | None:
    """Give `request` to whoever drives the run, or journal it here; why it was refused."""
    from raymond.faces.lines import Lines
    from raymond.machine import requests
    from raymond.store import inbox, lock, sources

    reading = journal.read(project, id)
    workspace = sources.place(project, reading.run)
    if lock.holder(project.beside(id, "lock")) is not None:
        _refuse(requests.problem(reading.run, workspace, request))
    try:
        held = lock.take(project.beside(id, "lock"), force=force)
    except RunBusy as busy:
        path = inbox.leave(project.beside(id, "inbox"), request)
        if _taken(path, project.beside(id, "lock")):
            return f"taken by process {busy.pid}, which drives {id}"
        if busy.host not in ("", os.uname().nodename):
            gone = f"when {busy.host} is gone: raymond resume {id} --force"
            return f"left for process {busy.pid} on {busy.host}, which drives {id}; {gone}"
        if lock.holder(project.beside(id, "lock")) is None:
            # It ended without another look: what it left undone is done here.
            inbox.remove(path)
            return hand_over(project, id, request, force=force)
        return f"left for process {busy.pid}, which drives {id}"
    try:
        reading = journal.read(project, id)
        run, lines = reading.run, Lines()
        lines.on_decisions(run, [])
        decisions: list[Decision] = []

        def decide(events: "list[Event]") -> None:
            if events:
                decisions.append(Decision(seq=run.seq + 1, time=round(time(), 3), events=events))
                apply(run, decisions[-1])
                lines.on_decisions(run, decisions[-1:])

        # Whoever drove it is gone, and with it the step that the journal still calls running.
        decide(requests.cut(run, request.agent, _spent(project, run, workspace, request.agent)))
        _refuse(requests.problem(run, workspace, request))
        decide(requests.take(run, workspace, request))
        book = journal.Journal(project, id, reading.size)
        for decision in decisions:
            book.append(decision)
        book.close()
        lines.refresh()
    finally:
        held.release()
    return None
