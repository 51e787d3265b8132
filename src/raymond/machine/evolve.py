"""How an event changes a run; nothing else does.

The cost of a change does not grow with the number of agents (run.py).
"""

from collections.abc import Iterable
from typing import assert_never

from msgspec.structs import replace

from raymond.machine.agent import (
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
    backend_of,
    rename,
)
from raymond.machine.events import (
    AgentCalled,
    AgentEnded,
    AgentFailed,
    AgentHeld,
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
    SessionNamed,
    StepEnded,
    StepFailed,
    StepFinished,
    StepInterrupted,
    StepRefused,
    StepStarted,
    WaitEnded,
    WaitStarted,
    WorkflowChanged,
)
from raymond.machine.failures import UNCOUNTED
from raymond.machine.run import Run, count_child, drop_timers, hold, pool_of, set_status, set_timer

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
            | AgentHeld()
            | SessionNamed()
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
            run.max_turns, run.allowed_tools = event.max_turns, event.allowed_tools
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
            run.max_turns = run.max_turns if event.max_turns is None else event.max_turns
            run.allowed_tools = [*run.allowed_tools, *event.allowed_tools]


def _change(run: Run, event: WorkflowChanged) -> None:
    run.started = replace(run.start, source=event.source, backends=event.backends, in_place=event.in_place)
    for agent in run.agents.values():
        rename(agent, event.renamed)
        if agent.status == READY and agent.pool != pool_of(run, agent.state):
            hold(run, agent, "")


def _open(run: Run, event: BackendOpened) -> None:
    if event.probing:
        closed = run.closed[event.backend]
        # `until` is over, but what was tried stays: if the one turn fails too, the next wait is longer.
        run.closed[event.backend] = Closed(closed.kind, closed.error, 0.0, closed.tries, closed.since)
        run.probing[event.backend] = None
        return
    run.closed.pop(event.backend, None)
    run.probing.pop(event.backend, None)
    if "/" in event.backend:
        for name in list(run.ready.get(event.backend, ())):
            hold(run, run.agents[name], "")


def _step(
    run: Run, agent: Agent, event: StepStarted | StepFinished | StepRefused | StepFailed | StepInterrupted
) -> None:
    if isinstance(event, StepStarted):
        _begin_step(run, agent, event)
        return
    if isinstance(event, StepFinished | StepRefused) and event.session:
        agent.session, agent.backend, agent.meter = event.session, backend_of(agent.pool), event.meter
    set_status(run, agent, DECIDING)
    _spend(run, agent, event)
    match event:
        case StepFinished():
            run.iterations += 1
        case StepRefused():
            agent.reminders += not (event.capped or event.blocked)
            agent.tries += 1
            agent.reminder = f"{event.reason}\n{event.hint}" if event.hint else event.reason
            agent.capped, agent.blocked = event.capped, event.blocked
            agent.interrupted = False
            set_status(run, agent, READY)
        case StepFailed():
            done = event.kind not in UNCOUNTED
            run.iterations += done
            run.turns -= not done
            _fail_step(run, agent, event)
        case StepInterrupted():
            agent.turn, agent.interrupted = 0, True
            set_status(run, agent, READY)


def _begin_step(run: Run, agent: Agent, event: StepStarted) -> None:
    # One that was held for its model is the one that tries it.
    set_status(run, agent, RUNNING, agent.held or event.backend or SCRIPTS)
    agent.held = ""
    agent.step, agent.attempt, agent.turn = event.step, event.attempt, event.turn
    agent.turn_session, agent.turn_base, agent.turn_model = event.session, event.base, event.model
    agent.cap = event.cap
    run.steps = max(run.steps, event.step)
    run.turns += bool(event.backend)
    run.reserved += event.cap


def _fail_step(run: Run, agent: Agent, event: StepFailed) -> None:
    agent.turn, agent.interrupted = 0, True
    agent.failures += event.charged
    agent.tries += 1
    if event.fresh:
        agent.session, agent.meter, agent.reminder, agent.freshened, agent.interrupted = "", (), "", True, False
    if event.again:
        set_status(run, agent, READY)


def _spend(run: Run, agent: Agent, event: StepEnded) -> None:
    if agent.cap:
        # Rounded: a crumb that stays reserved would let the last turn wait for ever.
        run.reserved = max(0.0, round(run.reserved - agent.cap, 4))
        agent.cap = 0.0
    agent.visit_cost += event.cost
    run.cost += event.cost
    run.unpriced += event.unknown
    for tool in event.denied:
        run.denied[tool] = run.denied.get(tool, 0) + 1
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
    set_status(run, agent, "")
    run.outcomes[agent.id] = Outcome(agent.id, agent.state, "done", event.result)
    count_child(run, agent, -1)
    drop_timers(run)


def _agent(
    run: Run,
    agent: Agent,
    event: AgentMoved
    | AgentCalled
    | AgentReturned
    | AgentWoke
    | AgentRetried
    | AgentFailed
    | AgentPaused
    | AgentHeld
    | SessionNamed,
) -> None:
    match event:
        case AgentHeld():
            hold(run, agent, event.pool)
        case SessionNamed():
            agent.turn_session = event.session
        case AgentMoved():
            if event.fresh:
                agent.session, agent.backend, agent.meter = "", "", ()
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
            set_status(run, agent, READY)
        case AgentRetried():
            agent.failures = agent.reminders = agent.turn = 0
            agent.error, agent.freshened, agent.given_up = "", False, False
            agent.visit_cost, agent.held = 0.0, ""
            if event.fresh:
                agent.session, agent.backend, agent.meter, agent.reminder = "", "", (), ""
            set_status(run, agent, READY)
        case AgentFailed():
            agent.error, agent.wake_at, agent.question = event.error, 0.0, ""
            agent.given_up = event.kind == "given up"
            set_status(run, agent, FAILED)
        case AgentPaused():
            agent.error, agent.wake_at = event.reason, 0.0
            set_status(run, agent, PAUSED)
    drop_timers(run)


def _call(run: Run, agent: Agent, event: AgentCalled) -> None:
    frame = Frame(
        event.then,
        agent.session,
        agent.backend,
        agent.cwd,
        agent.visits or {},
        agent.model,
        agent.effort,
        agent.meter,
    )
    agent.stack = agent.stack or []
    agent.stack.append(frame)
    agent.visits = None
    if event.tag == "function":
        agent.session, agent.backend, agent.meter = "", "", ()
        agent.model, agent.effort = event.model or agent.model, event.effort or agent.effort
    _enter(run, agent, event.state, event.input)
    set_status(run, agent, READY)


def _return(run: Run, agent: Agent, event: AgentReturned) -> None:
    assert agent.stack is not None
    frame = agent.stack.pop()
    agent.session, agent.backend, agent.cwd = frame.session, frame.backend, frame.cwd
    agent.visits, agent.model, agent.effort, agent.meter = frame.visits, frame.model, frame.effort, frame.meter
    _enter(run, agent, event.state, event.result)
    set_status(run, agent, READY)


def _rest(run: Run, agent: Agent, event: WaitStarted | WaitEnded | AskStarted | AskEnded) -> None:
    match event:
        case WaitStarted():
            agent.next_state, agent.next_input, agent.timeout_state = event.state, event.input, event.timeout_state
            set_timer(run, agent, event.deadline)
            set_status(run, agent, WAITING)
        case AskStarted():
            agent.question, agent.next_state, agent.timeout_state = event.question, event.state, event.timeout_state
            set_timer(run, agent, event.deadline)
            set_status(run, agent, ASKING)
        case WaitEnded():
            results, given = _collect(run, agent), agent.next_input
            _enter(run, agent, event.state, given or "")
            agent.results, agent.results_are_input = results, given is None
            set_status(run, agent, READY)
        case AskEnded():
            _enter(run, agent, event.state, event.answer)
            set_status(run, agent, READY)
    drop_timers(run)


def _collect(run: Run, agent: Agent) -> list[Outcome]:
    """The outcomes of the children that have ended, each collected once."""
    results: list[Outcome] = []
    left: dict[str, None] = {}
    for name in agent.children or ():
        child = run.agents.get(name)
        if child and child.status == FAILED:
            outcome = Outcome(name, child.state, "failed", "", child.error)
            set_status(run, child, "")
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
    agent.visit_cost, agent.held, agent.capped, agent.blocked = 0.0, "", False, False


def _sleep_or_go(run: Run, agent: Agent, at: float) -> None:
    set_timer(run, agent, at)
    set_status(run, agent, SLEEPING if at else READY)
