"""Backends that take no turns for a while: an infrastructure failure closes them, an answer opens them.

A fault of the machine closes scripts too, but not altogether: as many steps run at once as the machine had room for,
and one more is tried from time to time.
"""

from msgspec.structs import replace

from raymond.machine import failures
from raymond.machine.agent import SCRIPTS, Agent, Closed, backend_of
from raymond.machine.events import AgentPaused, BackendClosed, BackendOpened, Event
from raymond.machine.inputs import Failure
from raymond.machine.run import Run, shut
from raymond.machine.schedule import too_long


def close(run: Run, agent: Agent, input: Failure) -> list[Event]:
    """The infrastructure failed, not the work: the backend is closed and no attempt is charged."""
    if failures.CLASSES[input.kind].closes == "for a person":
        return _for_a_person(run, agent, input, input.time)
    if input.kind == "machine":
        return _crowded(run, agent, input)
    now = input.time
    backend = backend_of(agent.pool)
    if input.only_model:
        backend = f"{backend}/{agent.turn_model or 'default'}"
    closed = run.closed.get(backend)
    if closed and (closed.until > now or shut(run, backend)):
        return []  # another turn has already closed it, or only a person can open it
    before = closed if closed and closed.kind == input.kind else None
    since = before.since if before else now
    tries = before.tries + 1 if before else 0
    if input.kind == "overload" and now - since > run.start.patience:
        return _for_a_person(run, agent, input, since)
    until = failures.opens_at(input.kind, input.retry_at, now, tries)
    rest = BackendClosed(backend=backend, kind=input.kind, error=input.error, until=until, since=since, tries=tries)
    if input.kind == "limit" and until - since > run.start.max_wait and not run.stop:
        return [rest, too_long(run, backend, until - now)]
    return [rest]


def _crowded(run: Run, agent: Agent, input: Failure) -> list[Event]:
    """The machine could not start the step: no more than those that run now, until one more is tried."""
    pool = backend_of(agent.pool)
    closed = run.closed.get(pool)
    most = _busy(run, pool) - 1
    if closed and closed.until > input.time:
        # Several were begun at once; only the last of them knows how many could be started.
        is_fewer = closed.kind == "machine" and most < closed.most
        return [_told(pool, replace(closed, most=most))] if is_fewer else []
    before = closed if closed and closed.kind == "machine" else None
    tries = before.tries + 1 if before else 0
    until = input.time + failures.wait_after(tries)
    since = before.since if before else input.time
    return [_told(pool, Closed("machine", input.error, until, tries, since, most))]


def started(run: Run, agent: Agent, now: float) -> list[Event]:
    """The machine has room for one more step than it had: the next one is tried soon."""
    pool = backend_of(agent.pool)
    closed = run.closed.get(pool)
    if closed is None or closed.kind != "machine" or pool not in run.probing:
        return []
    most = _busy(run, pool)
    if most >= (run.start.max_scripts_at_once if pool == SCRIPTS else run.start.max_turns_at_once):
        return [BackendOpened(backend=pool)]
    return [_told(pool, replace(closed, until=now + failures.wait_after(0), tries=0, most=most))]


def freed(run: Run, agent: Agent) -> list[Event]:
    """A step that failed has left room on the machine, as one that finished does."""
    closed = run.closed.get(backend_of(agent.pool))
    return opened(run, agent) if closed and closed.kind == "machine" else []


def _busy(run: Run, pool: str) -> int:
    return sum(number for name, number in run.running.items() if backend_of(name) == pool)


def _told(pool: str, closed: Closed) -> BackendClosed:
    return BackendClosed(
        backend=pool,
        kind="machine",
        error=closed.error,
        until=closed.until,
        tries=closed.tries,
        since=closed.since,
        most=closed.most,
    )


def _for_a_person(run: Run, agent: Agent, input: Failure, since: float) -> list[Event]:
    """Waiting will not help: the agents of the backend pause and say what is wrong."""
    backend = backend_of(agent.pool)
    kind = input.kind
    assert kind in ("auth", "billing", "overload")
    queues = [queue for pool, queue in run.ready.items() if backend_of(pool) == backend]
    names = dict.fromkeys([agent.id, *(name for queue in queues for name in queue)])
    return [
        BackendClosed(backend=backend, kind=kind, error=input.error, since=since),
        *(AgentPaused(agent=name, kind=kind, reason=input.error, backend=backend) for name in names),
    ]


def opened(run: Run, agent: Agent) -> list[Event]:
    """A backend that answers is open; a turn that began before the backend was closed again proves nothing."""
    if not (run.closed or run.probing):
        return []
    pools = dict.fromkeys((backend_of(agent.pool), agent.pool))
    return [BackendOpened(backend=pool) for pool in pools if _proves(run, pool)]


def _proves(run: Run, pool: str) -> bool:
    closed = run.closed.get(pool)
    return pool in run.probing or (closed is not None and closed.kind == "overload" and closed.until > 0)
