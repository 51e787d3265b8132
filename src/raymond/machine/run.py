"""Run: everything that is true about a run and its agents.

A run keeps a first-come queue of ready agents for each pool (the scripts, and every backend), counts of what runs and
of children alive, and a heap of timers whose outdated entries are dropped when they come to the top: no change costs
more because there are more agents.
"""

import heapq
from collections import deque

from msgspec import Struct, field
from msgspec.structs import replace

from raymond.machine.agent import DECIDING, FAILED, READY, RUNNING, SCRIPTS, SLEEPING, Agent, Closed, Outcome, Visit
from raymond.machine.events import UNRECORDED, Program, Recording, RunStarted, RunStopped, TreeMade
from raymond.machine.limits import Limits, Rights

CANCELLED = "cancelled"
OVER = ("completed", CANCELLED)
"""How a run has ended that cannot be resumed; one that has failed can."""
_FEW = 64
"""Outdated timers that are not worth a search."""
KEPT = 10_000
"""Agents that have ended, and whose results nobody can collect any more, which are remembered for people to see."""
_REQUESTS = 1000
"""Requests that are remembered, in case one of them comes a second time."""


class Run(Struct):
    """Everything the journal says so far."""

    begun: RunStarted | None = None
    seq: int = 0
    now: float = 0.0
    started_at: float = 0.0
    resumed_at: float = 0.0
    """When the current or last driver began."""
    driven_until: float = 0.0
    """Time of the last decision a driver made; requests journaled while nobody drives do not count."""
    answered: bool = False
    """A question was answered, or a review decided, while nobody drove the run, and no driver has decided since."""
    driven: float = 0.0
    """Seconds that earlier drivers drove it."""
    clock: float = 0.0
    """By how many seconds the wall clock was set while the run was driven."""
    agents: dict[str, Agent] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    ready: dict[str, deque[str]] = field(default_factory=dict)
    running: dict[str, int] = field(default_factory=dict)
    timers: list[tuple[float, str]] = field(default_factory=list)
    closed: dict[str, Closed] = field(default_factory=dict)
    probing: dict[str, None] = field(default_factory=dict)
    started: int = 0
    """Agents that were ever started."""
    forget_at: int = 2 * KEPT
    """How many outcomes there are when the next are forgotten."""
    lost: int = 0
    """Agents that failed, and whose failure a wait has collected."""
    unhandled: int = 0
    """Those of them that the wait did not expect: they fail the run."""
    faults: dict[str, None] = field(default_factory=dict)
    """Their names."""
    requests: dict[str, None] = field(default_factory=dict)
    steps: int = 0
    questions: int = 0
    """Questions that were asked; an answer names the number of the one it is about."""
    gaps: list[tuple[int, int]] = field(default_factory=list)
    """Numbers that only lost steps can have had: those over the first of each pair, up to the second."""
    is_cut: bool = False
    """Its journal has lost its end, and no driver has resumed it since."""
    iterations: int = 0
    cost: float = 0.0
    scripted: float = 0.0
    """What of it scripted replies are said to have cost: nobody has paid that, though a budget counts it."""
    paid: dict[int, float] = field(default_factory=dict)
    """Steps whose end was lost, and what of their cost is counted already."""
    estimated: bool = False
    tokens_in: int = 0
    tokens_out: int = 0
    reserved: float = 0.0
    """Dollars that running turns may still cost."""
    turns: int = 0
    scripted_turns: int = 0
    """Those of them that scripted replies answered."""
    unpriced: int = 0
    """Turns of unknown cost."""
    denied: dict[str, int] = field(default_factory=dict)
    """How often tools were denied, by what would allow them."""
    failed_count: int = 0
    """Agents that failed and whose failure no parent has collected."""
    statuses: dict[str, int] = field(default_factory=dict)
    limits: Limits = Limits()
    rights: Rights = Rights()
    """What agents may now do without asking."""
    stop: RunStopped | None = None
    final_status: str = ""
    programs: list[Program] = field(default_factory=list)
    """What answered its prompts under the last driver that said so."""
    recording: Recording = UNRECORDED
    """Where else its last driver wrote what happened."""
    seals: dict[str, int] = field(default_factory=dict)
    """Directory -> the step that took down what decides its checks, of visits that ended without a green one."""
    red: dict[str, str] = field(default_factory=dict)
    """Agent -> the state whose gate stayed red when it was left by `on_fail`."""
    tree: TreeMade | None = None
    """Of a run with a workspace: what its tree began with."""
    saved: str = ""
    """The commit with what agents did there."""
    vouched: str = ""
    """The tree with what decides its checks, as a person left it or a green check has added to it."""
    leftovers: int = 0
    """Processes that finished steps had left running, and that the last driver ended when it left."""

    @property
    def is_over(self) -> bool:
        """Whether it cannot be resumed: it ended well, was cancelled, or nobody who failed is left to try again.

        One whose last failed agent was given a result since has still to end well.
        """
        return self.final_status in OVER or (bool(self.final_status) and not self.agents and self.unhandled > 0)

    @property
    def billed(self) -> float:
        """What it has really cost."""
        return max(0.0, self.cost - self.scripted)

    @property
    def start(self) -> RunStarted:
        """The first event; every journaled run has one."""
        assert self.begun is not None
        return self.begun


def shut(run: Run, pool: str) -> bool:
    """Whether `pool` takes no turns before a person resumes the run."""
    return pool in run.closed and not run.closed[pool].until and pool not in run.probing


def probe(run: Run, pool: str) -> None:
    """Let one turn try a closed pool; if it fails too, the next wait is longer, so the number of tries stays."""
    run.closed[pool] = replace(run.closed[pool], until=0.0)
    run.probing[pool] = None


def reopen(run: Run, pool: str) -> None:
    """Let turns start again in a closed pool."""
    run.closed.pop(pool, None)
    run.probing.pop(pool, None)
    if "/" in pool:
        for name in list(run.ready.get(pool, ())):
            hold(run, run.agents[name], "")


def pool_of(run: Run, state: str) -> str:
    """The pool that runs `state`: scripts, or a backend."""
    if not state.endswith(".md"):
        return SCRIPTS
    return run.start.backends.get(state, run.start.backend)


def judge_pool(run: Run, state: str, judge: str) -> str:
    """The pool in which a state is judged: its own; for a script, that of the judge."""
    own = pool_of(run, state)
    return pool_of(run, judge) if own == SCRIPTS else own


def hold(run: Run, agent: Agent, pool: str) -> None:
    """Move a ready agent to another queue."""
    set_status(run, agent, DECIDING)
    agent.visit.held = pool
    set_status(run, agent, READY)


def skip_numbers(run: Run, steps: int, questions: int) -> None:
    """The end of the journal was lost, and may have had steps and questions up to these numbers."""
    run.is_cut = True
    run.gaps.append((run.steps, steps))
    run.steps, run.questions = max(run.steps, steps), max(run.questions, questions)


def is_lost(run: Run, step: int) -> bool:
    """Whether the journal knows nothing of a step with this number, since its end was cut off."""
    return step > run.steps or any(after < step <= last for after, last in run.gaps)


def set_timer(run: Run, agent: Agent, at: float) -> None:
    """Set when something is due for the agent; 0 for nothing."""
    agent.visit.wake_at = agent.visit.due = at
    agent.visit.clock = run.clock
    if at:
        heapq.heappush(run.timers, (at, agent.id))
        if len(run.timers) > 2 * len(run.agents) + _FEW:
            _forget_timers(run)


def _forget_timers(run: Run) -> None:
    """Keep one timer for each agent: behind one that sleeps for long, outdated ones never come to the top."""
    run.timers = [(agent.visit.wake_at, name) for name, agent in run.agents.items() if agent.visit.wake_at]
    heapq.heapify(run.timers)


def keep_outcome(run: Run, outcome: Outcome) -> None:
    """Remember how an agent ended; now and then, forget the oldest of those that nobody waits for."""
    run.outcomes[outcome.agent] = outcome
    if len(run.outcomes) < run.forget_at:
        return
    awaited = {name for agent in run.agents.values() for name in agent.children or ()}
    others = [name for name in run.outcomes if name not in awaited and name != "main"]
    for name in others[:-KEPT]:
        del run.outcomes[name]
    run.forget_at = max(2 * KEPT, 2 * len(run.outcomes))


def keep_request(run: Run, id: str) -> None:
    """Remember a request; it is not carried out twice."""
    run.requests[id] = None
    if len(run.requests) > _REQUESTS:
        del run.requests[next(iter(run.requests))]


def set_clock(run: Run, by: float) -> None:
    """The clock was set: a timer is due when its moment comes or its time has passed, whichever is first."""
    run.clock += by
    run.resumed_at += by
    run.driven_until += by
    for name, closed in run.closed.items():
        # A usage limit ends at a moment that the service has named.
        if closed.until and closed.kind != "limit":
            until = round(min(closed.until, closed.until + by), 3)
            run.closed[name] = replace(closed, until=until, since=closed.since + by)
    for visit in (agent.visit for agent in run.agents.values() if agent.visit.wake_at):
        visit.wake_at = wakes_at(run, visit)
    _forget_timers(run)


def wakes_at(run: Run, visit: Visit) -> float:
    """When the timer of a visit is due, by the clock as it is set now."""
    return min(visit.due, round(visit.due + run.clock - visit.clock, 3))


def drop_timers(run: Run) -> None:
    """Drop outdated timers from the top of the heap."""
    while run.timers:
        at, name = run.timers[0]
        agent = run.agents.get(name)
        if agent and agent.visit.wake_at == at:
            return
        heapq.heappop(run.timers)


def count_child(run: Run, agent: Agent, by: int) -> None:
    """Count a child of the agent's parent as alive or no longer alive."""
    parent = run.agents.get(agent.parent)
    if parent and parent.children and agent.id in parent.children:
        parent.alive += by


def set_status(run: Run, agent: Agent, status: str, pool: str = "") -> None:
    """Change a status and with it every queue and count that depends on it."""
    old, statuses = agent.status, run.statuses
    statuses[old] -= 1
    if old == READY:
        _leave_queue(run.ready[agent.pool], agent.id)
    elif old == RUNNING:
        run.running[agent.pool] -= 1
    elif old == FAILED:
        run.failed_count -= 1
        count_child(run, agent, 1)
    agent.status = status
    if not status:
        return
    statuses[status] = statuses.get(status, 0) + 1
    if status == READY:
        agent.pool = pool = agent.visit.held or _queue_of(run, agent)
        if pool in run.ready:
            run.ready[pool].append(agent.id)
        else:
            run.ready[pool] = deque([agent.id])
    elif status == RUNNING:
        agent.pool = pool
        run.running[pool] = run.running.get(pool, 0) + 1
    elif status == FAILED:
        run.failed_count += 1
        count_child(run, agent, -1)


def _queue_of(run: Run, agent: Agent) -> str:
    """The pool that runs the next step of an agent."""
    pending = agent.visit.pending
    if pending is None:
        return pool_of(run, agent.state)
    return SCRIPTS if pending.gate or not pending.judge else judge_pool(run, agent.state, pending.judge)


def sleep_or_go(run: Run, agent: Agent, at: float) -> None:
    """Let the agent sleep until `at`; 0 lets it go on at once."""
    if at or agent.visit.due:
        set_timer(run, agent, at)
    set_status(run, agent, SLEEPING if at else READY)


def _leave_queue(queue: deque[str], name: str) -> None:
    if queue[0] == name:
        queue.popleft()
    else:
        queue.remove(name)


# The ids of conversations


def session_of(run: Run, step: int, turn: int) -> str:
    """The id of the conversation that a turn writes; never the same twice, as steps are not (`JournalCut`)."""
    from uuid import UUID, uuid5  # a run that has only scripts starts without it

    return str(uuid5(UUID(run.start.key), f"{step}.{turn}"))
