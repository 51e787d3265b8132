"""What turns may cost: the share of the budget that the next turn gets, and when none is left."""

from typing import TYPE_CHECKING

from raymond.machine import prices
from raymond.machine.agent import READY, RUNNING, SCRIPTS, SLEEPING, Agent, backend_of
from raymond.machine.run import Run

if TYPE_CHECKING:
    from raymond.language.policy import Policy

LEAST = 0.05
"""With fewer dollars than this a turn is not worth starting while another turn may release part of its share."""
WARN_AT = 0.8
"""The part of the budget after which people are warned."""


def left(run: Run) -> float:
    """Dollars of the budget that are neither spent nor reserved."""
    return (run.limits.budget or 0.0) - run.cost - run.reserved


def affordable(run: Run) -> int:
    """How many turns could start now with what is left; a very large number without a limit."""
    most = max(run.limits.max_turns - run.turns, 0) if run.limits.max_turns else 1 << 30
    if not run.limits.budget:
        return most
    turns = int(min(left(run) / LEAST + 1e-9, most))
    # The last turn gets all that is left: no other turn could release anything.
    return min(most, max(turns, 0) or (0 if run.reserved > 0 else 1))


def cap(run: Run, agent: Agent, rules: "Policy") -> float:
    """Dollars the agent's next turn may cost; 0 for no limit.

    A visit with its own budget gets that. Otherwise what is left is shared with every agent that could start a
    turn while this one runs, so that the first does not make the others wait for it.
    """
    of_visit = max(rules.budget - agent.visit.cost, 0.01) if rules.budget else 0.0
    if not run.limits.budget:
        return of_visit
    rest = max(left(run), 0.01)
    if of_visit:
        return min(of_visit, rest)
    return max(rest / _sharers(run), min(LEAST, rest))


def _sharers(run: Run) -> int:
    """How many agents could be in a turn at once, including the one about to start, within the allowed number."""
    busy = run.statuses.get(RUNNING, 0) - run.running.get(SCRIPTS, 0)
    moving = run.statuses.get(READY, 0) + run.running.get(SCRIPTS, 0) + run.statuses.get(SLEEPING, 0)
    backends = {backend_of(pool) for pool in (*run.ready, *run.running) if pool != SCRIPTS}
    room = run.start.max_turns_at_once * len(backends) - busy
    return max(1, min(moving, room))


def spent(rules: "Policy", agent: Agent, cost: float) -> str:
    """A sentence if the visit, including the step that just ended, has used up its own budget; otherwise empty."""
    if not rules.budget or agent.visit.cost + cost < rules.budget:
        return ""
    return f"the visit cost {prices.show(agent.visit.cost + cost)}, and its budget is {prices.show(rules.budget)}"


def warned(run: Run, before: float, cost: float) -> str:
    """The warning when the `cost` of the run, which was `before`, has just come close to its budget."""
    budget = run.limits.budget
    if not budget or cost == before:
        return ""
    at = round(WARN_AT * budget, 9)
    if not round(before, 9) < at <= round(cost, 9) < budget:
        return ""
    return f"{WARN_AT:.0%} of the budget is spent: {prices.show(cost)} of {prices.show(budget)}"
