"""What should happen next: the steps that are owed, the times when something is due, the limits reached."""

from collections.abc import Mapping
from itertools import islice

from raymond.machine import budget
from raymond.machine.agent import ASKING, FAILED, SCRIPTS, backend_of
from raymond.machine.events import RunStopped
from raymond.machine.limits import LimitName, Usage
from raymond.machine.run import Run


def owed(run: Run) -> list[str]:
    """The agents whose step should start now, first come, first served."""
    if run.stop or run.final_status:
        return []
    names: list[str] = []
    turns, taken = 0, dict(run.running)
    for pool, queue in run.ready.items():
        if not queue:
            continue
        room = _room(run, pool, taken)
        if pool != SCRIPTS:
            room = min(room, budget.affordable(run) - turns)
        chosen = list(islice(queue, room))
        turns += len(chosen) if pool != SCRIPTS else 0
        taken[pool] = taken.get(pool, 0) + len(chosen)
        names += chosen
    return names


def wake_at(run: Run) -> float | None:
    """The next time when something is due."""
    first = run.timers[0][0] if run.timers else None
    if not run.closed:
        return first
    times = [closed.until for closed in run.closed.values() if closed.until]
    return min([*times, first] if first is not None else times, default=None)


def over_at(run: Run) -> float:
    """When the run reaches its time limit; 0 when it has none."""
    return run.resumed_at + max(0.0, run.limits.max_time - run.driven) if run.limits.max_time else 0.0


def due(run: Run, now: float) -> bool:
    """Whether something is due at `now`: a cheap check before `decide` is called."""
    at = wake_at(run)
    if (at is not None and at <= now) or len(run.agents) == run.statuses.get(FAILED, 0):
        return True
    if fails_asks(run):
        return True
    return bool(run.limits.max_time) and not run.stop and over_at(run) <= now


def fails_asks(run: Run) -> bool:
    """Whether an agent asks in a run in which nobody is to be asked."""
    return bool(run.statuses.get(ASKING)) and run.start.on_ask == "fail" and not run.stop and not run.final_status


def reached(
    run: Run, *, iterations: int = 0, cost: float = 0.0, turns: int = 0, unpriced: int = 0, driven: float = 0.0
) -> RunStopped | None:
    """The stop at a limit that the run reaches with what is about to be added; None when it reaches none."""
    used = Usage(
        run.iterations + iterations,
        run.cost + cost,
        run.turns + turns,
        run.unpriced + unpriced,
        run.driven + max(0.0, run.driven_until - run.resumed_at) + driven,
    )
    limit = run.limits.reached(used)
    return stop_at(run, limit) if limit else None


def stop_at(run: Run, limit: LimitName) -> RunStopped:
    """The stop of a run at one of its limits."""
    return RunStopped(kind="limit", limit=limit, amount=run.limits.amount(limit))


def too_long(run: Run, backend: str, wait: float) -> RunStopped:
    """The stop of a run that will not wait that long for a backend's usage limit."""
    return RunStopped(kind="limit", limit="wait", amount=run.start.max_wait, backend=backend, wait=wait)


def _room(run: Run, pool: str, taken: Mapping[str, int]) -> int:
    """Steps that could start in `pool`; turns of a closed model count against their backend too."""
    if pool == SCRIPTS:
        return max(0, _limit(run, pool) - taken.get(pool, 0))
    backend = backend_of(pool)
    busy = sum(number for name, number in taken.items() if backend_of(name) == backend)
    return max(0, min(_limit(run, pool) - taken.get(pool, 0), _limit(run, backend) - busy))


def _limit(run: Run, pool: str) -> int:
    if pool in run.closed:
        return run.closed[pool].most + (pool in run.probing)
    if "/" in pool:
        return 0  # opened while one of its turns ran: the agents that waited for it are back in the backend's queue
    return run.start.max_scripts_at_once if pool == SCRIPTS else run.start.max_turns_at_once
