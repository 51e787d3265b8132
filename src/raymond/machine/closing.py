"""Backends that take no turns for a while: an infrastructure failure closes them, an answer opens them."""

from raymond.machine import failures
from raymond.machine.agent import Agent, backend_of
from raymond.machine.events import AgentPaused, BackendClosed, BackendOpened, Event
from raymond.machine.inputs import Failure
from raymond.machine.run import Run, shut
from raymond.machine.schedule import too_long


def close(run: Run, agent: Agent, input: Failure) -> list[Event]:
    """The infrastructure failed, not the work: the backend is closed and no attempt is charged."""
    if failures.CLASSES[input.kind].closes == "for a person":
        return _for_a_person(run, agent, input, input.time)
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
    pools = dict.fromkeys((backend_of(agent.pool), agent.pool))
    return [BackendOpened(backend=pool) for pool in pools if _proves(run, pool)]


def _proves(run: Run, pool: str) -> bool:
    closed = run.closed.get(pool)
    return pool in run.probing or (closed is not None and closed.kind == "overload" and closed.until > 0)
