"""Run: what is true, and how an event changes it.

`evolve` is the only function that changes a run. Its cost does not grow with the number of agents: a run keeps a
first-come queue of ready agents for each pool (the scripts, and every backend), counts of what runs and of children
alive, and a heap of timers whose outdated entries are dropped when they come to the top.
"""

import heapq
from collections import deque
from collections.abc import Iterable
from typing import assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from raymond.agent import (
    ASKING,
    DECIDING,
    FAILED,
    PAUSED,
    READY,
    RUNNING,
    SCRIPTS,
    SLEEPING,
    WAITING,
    Agent,
    Closed,
    Frame,
    Outcome,
    rename,
)
from raymond.events import (
    AgentCalled,
    AgentEnded,
    AgentFailed,
    AgentMoved,
    AgentPaused,
    AgentRetried,
    AgentReturned,
    AgentStarted,
    AgentWoke,
    AskEnded,
    AskStarted,
    BackendClosed,
    BackendOpened,
    Decision,
    Event,
    LimitsChanged,
    RequestTaken,
    RunEnded,
    RunResumed,
    RunStarted,
    RunStopped,
    Spent,
    StepFailed,
    StepFinished,
    StepInterrupted,
    StepRefused,
    StepStarted,
    WaitEnded,
    WaitStarted,
    WorkflowChanged,
)


class Run(Struct):
    """Everything the journal says so far."""

    started: RunStarted | None = None
    seq: int = 0
    now: float = 0.0
    started_at: float = 0.0
    taken_up_at: float = 0.0
    """When the driver that is on it, or was the last, began."""
    driven_until: float = 0.0
    """The last that was heard of a driver; what a person asks of a run that nobody drives is no sign of one."""
    driven: float = 0.0
    """Seconds of the drivers before that one."""
    agents: dict[str, Agent] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    ready: dict[str, deque[str]] = field(default_factory=dict)
    running: dict[str, int] = field(default_factory=dict)
    timers: list[tuple[float, str]] = field(default_factory=list)
    closed: dict[str, Closed] = field(default_factory=dict)
    probing: dict[str, None] = field(default_factory=dict)
    fork_counters: dict[str, int] = field(default_factory=dict)
    requests: dict[str, None] = field(default_factory=dict)
    steps: int = 0
    iterations: int = 0
    cost: float = 0.0
    estimated: bool = False
    tokens_in: int = 0
    tokens_out: int = 0
    failed: int = 0
    """Agents that failed and that nobody collected."""
    statuses: dict[str, int] = field(default_factory=dict)
    budget: float = 0.0
    max_iterations: int = 0
    max_time: float = 0.0
    stopped: RunStopped | None = None
    ended: str = ""

    @property
    def start(self) -> RunStarted:
        """The first event; every run that was written has one."""
        assert self.started is not None
        return self.started


_BY_A_PERSON = (RequestTaken, WorkflowChanged)


def apply(run: Run, decision: Decision) -> list[str]:
    """Let `decision` be true; the agents it touched."""
    run.seq = decision.seq
    run.now = decision.time
    touched: list[str] = []
    for event in decision.events:
        touched += evolve(run, event)
    if not (decision.events and isinstance(decision.events[0], _BY_A_PERSON)):
        run.driven_until = decision.time
    return touched


def fold(decisions: Iterable[Decision], run: Run | None = None) -> Run:
    """The run these decisions describe."""
    run = run or Run()
    for decision in decisions:
        apply(run, decision)
    return run


def shut(run: Run, pool: str) -> bool:
    """Whether `pool` takes no turns before a person resumes the run."""
    return pool in run.closed and not run.closed[pool].until and pool not in run.probing


def pool_of(run: Run, state: str) -> str:
    """Who runs `state`: the scripts, or a backend."""
    if not state.endswith(".md"):
        return SCRIPTS
    return run.start.backends.get(state, run.start.backend)


def evolve(run: Run, event: Event) -> list[str]:
    """Let `event` be true; the agents it touched."""
    match event:
        case StepStarted() | StepFinished() | StepRefused() | StepFailed() | StepInterrupted():
            _step(run, run.agents[event.agent], event)
        case AgentStarted():
            _start(run, event)
        case AgentEnded():
            _end(run, event)
        case (
            AgentMoved()
            | AgentCalled()
            | AgentReturned()
            | AgentWoke()
            | AgentRetried()
            | AgentFailed()
            | AgentPaused()
        ):
            _agent(run, run.agents[event.agent], event)
        case WaitStarted() | WaitEnded() | AskStarted() | AskEnded():
            _rest(run, run.agents[event.agent], event)
        case BackendClosed():
            run.closed[event.backend] = Closed(event.kind, event.error, event.until, event.tries, event.since)
            run.probing.pop(event.backend, None)
            return []
        case BackendOpened():
            _open(run, event)
            return []
        case RunStarted() | RunResumed() | RunStopped() | RunEnded() | RequestTaken() | LimitsChanged():
            _run(run, event)
            return []
        case WorkflowChanged():
            _change(run, event)
            return []
        case _:
            assert_never(event)
    return [event.agent]


def _run(run: Run, event: RunStarted | RunResumed | RunStopped | RunEnded | RequestTaken | LimitsChanged) -> None:
    match event:
        case RunStarted():
            run.started, run.started_at, run.taken_up_at = event, run.now, run.now
            run.budget, run.max_iterations, run.max_time = event.budget, event.max_iterations, event.max_time
        case RunResumed():
            run.stopped, run.ended = None, ""
            run.driven += max(0.0, run.driven_until - run.taken_up_at)
            run.taken_up_at = run.now
        case RunStopped():
            run.stopped = event
        case RunEnded():
            run.ended = event.status
        case RequestTaken():
            run.requests[event.request] = None
        case LimitsChanged():
            run.budget = run.budget if event.budget is None else event.budget
            run.max_iterations = run.max_iterations if event.max_iterations is None else event.max_iterations
            run.max_time = run.max_time if event.max_time is None else event.max_time


def _change(run: Run, event: WorkflowChanged) -> None:
    run.started = replace(run.start, source=event.source, backends=event.backends)
    for agent in run.agents.values():
        rename(agent, event.renamed)
        if agent.status == READY and agent.pool != pool_of(run, agent.state):
            _set(run, agent, DECIDING)
            _set(run, agent, READY)


def _open(run: Run, event: BackendOpened) -> None:
    if event.probing:
        closed = run.closed[event.backend]
        # `until` is over, but what was tried stays: if the one turn fails too, the next wait is longer.
        run.closed[event.backend] = Closed(closed.kind, closed.error, 0.0, closed.tries, closed.since)
        run.probing[event.backend] = None
    else:
        run.closed.pop(event.backend, None)
        run.probing.pop(event.backend, None)


def _step(
    run: Run, agent: Agent, event: StepStarted | StepFinished | StepRefused | StepFailed | StepInterrupted
) -> None:
    if isinstance(event, StepStarted):
        _set(run, agent, RUNNING, event.backend or SCRIPTS)
        agent.step, agent.attempt, agent.turn = event.step, event.attempt, event.turn
        agent.turn_session, agent.turn_base = event.session, event.base
        run.steps = max(run.steps, event.step)
        return
    backend = agent.pool
    _set(run, agent, DECIDING)
    _spend(run, event)
    match event:
        case StepFinished():
            run.iterations += 1
            if event.session:
                agent.session, agent.backend = event.session, backend
        case StepRefused():
            if event.session:
                agent.session, agent.backend = event.session, backend
            agent.reminders += 1
            agent.tries += 1
            agent.reminder = f"{event.reason}\n{event.hint}" if event.hint else event.reason
            agent.interrupted = False
            _set(run, agent, READY)
        case StepFailed():
            run.iterations += 1
            _fail_step(run, agent, event)
        case StepInterrupted():
            agent.turn, agent.interrupted = 0, True
            _set(run, agent, READY)


def _fail_step(run: Run, agent: Agent, event: StepFailed) -> None:
    agent.turn, agent.interrupted = 0, True
    agent.failures += event.charged
    agent.tries += 1
    if event.fresh:
        agent.session, agent.reminder, agent.freshened, agent.interrupted = "", "", True, False
    if event.again:
        _set(run, agent, READY)


def _spend(run: Run, event: Spent) -> None:
    run.cost += event.cost
    run.estimated = run.estimated or event.estimated
    run.tokens_in += event.tokens_in
    run.tokens_out += event.tokens_out


def _start(run: Run, event: AgentStarted) -> None:
    agent = Agent(event.agent, event.state, parent=event.parent, cwd=event.cwd, variables=event.variables or None)
    run.agents[agent.id] = agent
    run.statuses[DECIDING] = run.statuses.get(DECIDING, 0) + 1
    if event.parent:
        parent = run.agents[event.parent]
        parent.children = parent.children or {}
        parent.children[agent.id] = None
        parent.alive += 1
        parent.forks += 1
        run.fork_counters[parent.id] = parent.forks
    _enter(run, agent, event.state, event.input)
    _sleep_or_go(run, agent, event.wake_at)


def _end(run: Run, event: AgentEnded) -> None:
    agent = run.agents.pop(event.agent)
    _set(run, agent, "")
    run.outcomes[agent.id] = Outcome(agent.id, agent.state, "done", event.result)
    _count_child(run, agent, -1)
    _drop_timers(run)


def _agent(
    run: Run,
    agent: Agent,
    event: AgentMoved | AgentCalled | AgentReturned | AgentWoke | AgentRetried | AgentFailed | AgentPaused,
) -> None:
    match event:
        case AgentMoved():
            if event.fresh:
                agent.session = agent.backend = ""
            agent.cwd = event.cwd or agent.cwd
            _enter(run, agent, event.state, event.input)
            agent.cause = event.error
            _sleep_or_go(run, agent, event.wake_at)
        case AgentCalled():
            _call(run, agent, event)
        case AgentReturned():
            _return(run, agent, event)
        case AgentWoke():
            agent.wake_at = 0.0
            _set(run, agent, READY)
        case AgentRetried():
            agent.failures = agent.reminders = agent.turn = 0
            agent.error, agent.freshened, agent.given_up = "", False, False
            _set(run, agent, READY)
        case AgentFailed():
            agent.error, agent.wake_at, agent.question = event.error, 0.0, ""
            agent.given_up = event.kind == "given up"
            _set(run, agent, FAILED)
        case AgentPaused():
            agent.error, agent.wake_at = event.reason, 0.0
            _set(run, agent, PAUSED)
    _drop_timers(run)


def _call(run: Run, agent: Agent, event: AgentCalled) -> None:
    frame = Frame(event.then, agent.session, agent.backend, agent.cwd, agent.visits or {}, agent.model, agent.effort)
    agent.stack = agent.stack or []
    agent.stack.append(frame)
    agent.visits = None
    if event.tag == "function":
        agent.session = agent.backend = ""
        agent.model, agent.effort = event.model or agent.model, event.effort or agent.effort
    _enter(run, agent, event.state, event.input)
    _set(run, agent, READY)


def _return(run: Run, agent: Agent, event: AgentReturned) -> None:
    assert agent.stack is not None
    frame = agent.stack.pop()
    agent.session, agent.backend, agent.cwd = frame.session, frame.backend, frame.cwd
    agent.visits, agent.model, agent.effort = frame.visits, frame.model, frame.effort
    _enter(run, agent, event.state, event.result)
    _set(run, agent, READY)


def _rest(run: Run, agent: Agent, event: WaitStarted | WaitEnded | AskStarted | AskEnded) -> None:
    match event:
        case WaitStarted():
            agent.next_state, agent.next_input, agent.timeout_state = event.state, event.input, event.timeout_state
            _set_timer(run, agent, event.deadline)
            _set(run, agent, WAITING)
        case AskStarted():
            agent.question, agent.next_state, agent.timeout_state = event.question, event.state, event.timeout_state
            _set_timer(run, agent, event.deadline)
            _set(run, agent, ASKING)
        case WaitEnded():
            results, given = _collect(run, agent), agent.next_input
            _enter(run, agent, event.state, given or "")
            agent.results, agent.results_are_input = results, given is None
            _set(run, agent, READY)
        case AskEnded():
            _enter(run, agent, event.state, event.answer)
            _set(run, agent, READY)
    _drop_timers(run)


def _collect(run: Run, agent: Agent) -> list[Outcome]:
    """The outcomes of the children that have ended, each collected once."""
    results: list[Outcome] = []
    left: dict[str, None] = {}
    for name in agent.children or ():
        child = run.agents.get(name)
        if child and child.status == FAILED:
            outcome = Outcome(name, child.state, "failed", "", child.error)
            _set(run, child, "")
            agent.alive -= 1  # leaving FAILED had counted it alive
            del run.agents[name]
            run.outcomes[name] = outcome
            results.append(outcome)
        elif child:
            left[name] = None
        else:
            results.append(run.outcomes[name])
    agent.children = left or None
    return results


def _enter(run: Run, agent: Agent, state: str, text: str) -> None:
    """Begin a visit: what belonged to the last one is gone."""
    agent.state, agent.input, agent.since = state, text, run.now
    agent.visits = agent.visits or {}
    agent.visits[state] = agent.visits.get(state, 0) + 1
    agent.entered += 1
    if state.endswith(".md"):
        agent.prompted = agent.prompted or {}
        agent.prompted[state] = agent.prompted.get(state, 0) + 1
    agent.results, agent.results_are_input, agent.error, agent.cause = None, False, "", ""
    agent.attempt = agent.turn = agent.failures = agent.reminders = agent.tries = 0
    agent.reminder, agent.freshened, agent.interrupted, agent.given_up = "", False, False, False
    agent.wake_at, agent.question, agent.next_state, agent.timeout_state = 0.0, "", "", ""
    agent.next_input = None


def _sleep_or_go(run: Run, agent: Agent, at: float) -> None:
    _set_timer(run, agent, at)
    _set(run, agent, SLEEPING if at else READY)


def _set_timer(run: Run, agent: Agent, at: float) -> None:
    agent.wake_at = at
    if at:
        heapq.heappush(run.timers, (at, agent.id))


def _drop_timers(run: Run) -> None:
    while run.timers:
        at, name = run.timers[0]
        agent = run.agents.get(name)
        if agent and agent.wake_at == at:
            return
        heapq.heappop(run.timers)


def _count_child(run: Run, agent: Agent, by: int) -> None:
    parent = run.agents.get(agent.parent)
    if parent and parent.children and agent.id in parent.children:
        parent.alive += by


def _set(run: Run, agent: Agent, status: str, pool: str = "") -> None:
    """Change a status and with it every queue and count that depends on it."""
    old = agent.status
    run.statuses[old] -= 1
    if old == READY:
        _leave_queue(run.ready[agent.pool], agent.id)
    elif old == RUNNING:
        run.running[agent.pool] -= 1
    elif old == FAILED:
        run.failed -= 1
        _count_child(run, agent, 1)
    agent.status = status
    if not status:
        return
    run.statuses[status] = run.statuses.get(status, 0) + 1
    if status == READY:
        agent.pool = pool_of(run, agent.state)
        run.ready.setdefault(agent.pool, deque()).append(agent.id)
    elif status == RUNNING:
        agent.pool = pool
        run.running[pool] = run.running.get(pool, 0) + 1
    elif status == FAILED:
        run.failed += 1
        _count_child(run, agent, -1)


def _leave_queue(queue: deque[str], name: str) -> None:
    if queue[0] == name:
        queue.popleft()
    else:
        queue.remove(name)
