"""What should happen next: the steps that are owed, the moments at which something is due, the limits reached."""

from collections.abc import Mapping
from itertools import islice

from raymond import durations
from raymond.machine import budget, prices
from raymond.machine.agent import FAILED, SCRIPTS, backend_of
from raymond.machine.run import Run


def owed(run: Run) -> list[str]:
    """The agents whose step should start now, first come first."""
    if run.stopped or run.ended:
        return []
    names: list[str] = []
    turns = budget.affordable(run)
    taken = dict(run.running)
    for pool, queue in run.ready.items():
        room = _room(run, pool, taken)
        chosen = list(islice(queue, room if pool == SCRIPTS else min(room, turns)))
        turns -= len(chosen) if pool != SCRIPTS else 0
        taken[pool] = taken.get(pool, 0) + len(chosen)
        names += chosen
    return names


def wake_at(run: Run) -> float | None:
    """The next moment at which something is due."""
    first = run.timers[0][0] if run.timers else None
    if not run.closed:
        return first
    times = [closed.until for closed in run.closed.values() if closed.until]
    return min([*times, first] if first is not None else times, default=None)


def over_at(run: Run) -> float:
    """When the run has been driven for as long as it may; 0 when nothing limits it."""
    return run.taken_up_at + max(0.0, run.max_time - run.driven) if run.max_time else 0.0


def due(run: Run, now: float) -> bool:
    """Whether time alone makes something happen at `now`: a cheap look before `decide` is asked."""
    at = wake_at(run)
    if (at is not None and at <= now) or len(run.agents) == run.statuses.get(FAILED, 0):
        return True
    return bool(run.max_time) and not run.stopped and over_at(run) <= now


def reached(run: Run, *, iterations: int = 0, cost: float = 0.0, turns: int = 0, unpriced: int = 0) -> str:
    """Which limit of the run is used up, with what is about to be added; nothing when none is."""
    if run.max_iterations and run.iterations + iterations >= run.max_iterations:
        return f"max_iterations ({run.max_iterations}) was reached"
    if run.budget and run.cost + cost >= run.budget:
        return f"the budget of {prices.show(run.budget)} is spent"
    if run.max_turns and run.turns + turns >= run.max_turns:
        return f"max_turns ({run.max_turns}) was reached"
    if not run.max_turns and run.unpriced + unpriced >= budget.UNPRICED_TURNS:
        return f"{budget.UNPRICED_TURNS} turns were made whose cost nobody can tell (max_turns)"
    if run.max_time and run.driven + max(0.0, run.driven_until - run.taken_up_at) >= run.max_time:
        return f"max_time ({durations.show(run.max_time)}) is over"
    return ""


def _room(run: Run, pool: str, taken: Mapping[str, int]) -> int:
    """Steps that could start in `pool`; the turns of a closed model take the places of its backend."""
    if pool == SCRIPTS:
        return max(0, run.start.max_scripts_at_once - taken.get(pool, 0))
    backend = backend_of(pool)
    busy = sum(number for name, number in taken.items() if backend_of(name) == backend)
    return max(0, min(_limit(run, pool) - taken.get(pool, 0), _limit(run, backend) - busy))


def _limit(run: Run, pool: str) -> int:
    if pool in run.closed:
        return 1 if pool in run.probing else 0
    if "/" in pool:
        return 0  # opened while one of its turns ran: those that were held have gone back
    return run.start.max_turns_at_once
