"""How an event changes a run; nothing else does. One function per event, in the table at the end.

The cost of a change does not grow with the number of agents (run.py).
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from msgspec.structs import replace

from raymond.machine import gate_changes, step_changes
from raymond.machine.agent import (
    ASKING,
    DECIDING,
    FAILED,
    PAUSED,
    READY,
    SLEEPING,
    WAITING,
    Agent,
    Closed,
    Frame,
    Outcome,
    Rest,
    Stuck,
    Visit,
    done_outcome,
    rebased,
    relocate,
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
    ClockSet,
    Decision,
    EvaluatorEnded,
    Event,
    GateEnded,
    JournalCut,
    LeftoversEnded,
    LimitsChanged,
    ProgramAdded,
    RequestTaken,
    ReviewEnded,
    RunEnded,
    RunMoved,
    RunResumed,
    RunStarted,
    RunStopped,
    SealEnded,
    SessionNamed,
    StepFailed,
    StepFinished,
    StepInterrupted,
    StepRefused,
    StepStarted,
    TransitionHeld,
    TreeMade,
    WaitEnded,
    WaitStarted,
    WorkflowChanged,
    WorkSaved,
)
from raymond.machine.limits import limits_of, rights_of
from raymond.machine.run import (
    CANCELLED,
    Run,
    count_child,
    drop_timers,
    hold,
    keep_outcome,
    keep_request,
    pool_of,
    probe,
    reopen,
    set_clock,
    set_status,
    set_timer,
    skip_numbers,
    sleep_or_go,
    wakes_at,
)

_BY_A_PERSON = frozenset((JournalCut, RunMoved, WorkflowChanged))
_NOWHERE = Visit("")
"""The visit of an agent that has not entered its first state."""

Change: TypeAlias = Callable[[Run, Any], object]


def apply(run: Run, decision: Decision) -> None:
    """Apply `decision` to `run`."""
    run.seq = decision.seq
    run.now = decision.time
    for event in decision.events:
        _CHANGES[type(event)](run, event)
    if is_by_driver(decision):
        run.driven_until, run.answered = decision.time, False
    elif any(isinstance(event, AskEnded | ReviewEnded) for event in decision.events):
        run.answered = True


def is_by_driver(decision: Decision) -> bool:
    """Whether a process that drives the run made a decision; a command may make one while nobody drives it."""
    first = decision.events[0] if decision.events else None
    if type(first) is RequestTaken:
        return first.sender is not None and first.sender.way in ("socket", "face")
    return type(first) not in _BY_A_PERSON


def fold(decisions: Iterable[Decision], run: Run | None = None) -> Run:
    """The run these decisions describe."""
    run = run or Run()
    for decision in decisions:
        apply(run, decision)
    return run


def evolve(run: Run, event: Event) -> None:
    """Apply `event` to `run`."""
    _CHANGES[type(event)](run, event)


# --- the run


def _run_started(run: Run, event: RunStarted) -> None:
    run.begun, run.started_at, run.resumed_at = event, run.now, run.now
    run.limits, run.rights = limits_of(event), rights_of(event)
    run.programs, run.recording = event.programs, event.recording


def _run_resumed(run: Run, event: RunResumed) -> None:
    run.stop, run.final_status, run.leftovers, run.is_cut = None, "", 0, False
    run.driven += max(0.0, run.driven_until - run.resumed_at) + event.driven
    run.resumed_at = run.now
    run.programs, run.recording = event.programs, event.recording


def _run_stopped(run: Run, event: RunStopped) -> None:
    run.stop = event
    if event.kind == CANCELLED:
        run.final_status = CANCELLED


def _program_added(run: Run, event: ProgramAdded) -> None:
    run.programs = [*run.programs, event.program]


def _leftovers_ended(run: Run, event: LeftoversEnded) -> None:
    run.leftovers = event.count


def _run_ended(run: Run, event: RunEnded) -> None:
    run.final_status = event.status


def _journal_cut(run: Run, event: JournalCut) -> None:
    skip_numbers(run, event.steps, event.questions)
    run.cost += event.cost
    run.scripted += event.scripted
    run.paid.update(event.paid)


def _limits_changed(run: Run, event: LimitsChanged) -> None:
    run.limits = limits_of(event).over(run.limits)
    if event.allowed_tools:
        run.rights = replace(run.rights, allowed=(*run.rights.allowed, *event.allowed_tools))
    if event.roots:
        run.begun = replace(run.start, roots=list(dict.fromkeys((*run.start.roots, *event.roots))))
    if event.on_ask:
        run.begun = replace(run.start, on_ask=event.on_ask)


def _run_moved(run: Run, event: RunMoved) -> None:
    start, old, new = run.start, event.before, event.after
    roots = [rebased(root, old, new) for root in start.roots]
    scope = rebased(start.scope_dir, old, new)
    run.begun = replace(start, cwd=event.cwd, roots=roots, scope_dir=scope, commit=event.commit)
    run.seals = {rebased(cwd, old, new): step for cwd, step in run.seals.items()}
    for agent in run.agents.values():
        relocate(agent, old, new, event.lost)


def _workflow_changed(run: Run, event: WorkflowChanged) -> None:
    run.begun = replace(run.start, source=event.source, backends=event.backends, in_place=event.in_place)
    for agent in run.agents.values():
        rename(agent, event.renamed)
        if agent.status == READY and agent.pool != pool_of(run, agent.state):
            hold(run, agent, "")


def _tree_made(run: Run, event: TreeMade) -> None:
    run.tree = event


def _work_saved(run: Run, event: WorkSaved) -> None:
    run.saved = event.commit


def _backend_closed(run: Run, event: BackendClosed) -> None:
    run.closed[event.backend] = Closed(event.kind, event.error, event.until, event.tries, event.since, event.most)
    run.probing.pop(event.backend, None)


# --- agents


def _agent_started(run: Run, event: AgentStarted) -> None:
    if "/" in event.agent or event.agent in ("", ".", "..") or not event.agent.isprintable():
        raise ValueError(f"`{event.agent}` cannot be the name of an agent")  # files are named for it
    agent = Agent(event.agent, _NOWHERE, parent=event.parent, cwd=event.cwd, variables=event.variables or None)
    agent.label = event.label
    run.agents[agent.id] = agent
    run.started += 1
    run.statuses[DECIDING] = run.statuses.get(DECIDING, 0) + 1
    if event.parent:
        parent = run.agents[event.parent]
        parent.children = parent.children or {}
        parent.children[agent.id] = None
        parent.alive += 1
        parent.forks += 1
    _enter(run, agent, event.state, event.input)
    sleep_or_go(run, agent, event.wake_at)


def _agent_ended(run: Run, event: AgentEnded) -> None:
    agent = run.agents.pop(event.agent)
    if agent.visit.seal:
        gate_changes.hand_on(run, agent.visit.seal)
    set_status(run, agent, "")
    count_child(run, agent, -1)
    keep_outcome(run, done_outcome(agent.id, agent.state, event.result, agent.label))
    drop_timers(run)


def _agent_moved(run: Run, event: AgentMoved) -> None:
    agent = run.agents[event.agent]
    if event.fresh:
        agent.conversation = None
    agent.cwd = event.cwd or agent.cwd
    came_from, checked = agent.state, agent.visit.checked
    if event.tag == "on_fail":
        run.red[agent.id] = came_from
    visit = _enter(run, agent, event.state, event.input)
    visit.cause, visit.gate, visit.gate_result = event.error, event.gate, checked
    visit.detour = (came_from, event.instead_of) if event.instead_of else None
    sleep_or_go(run, agent, event.wake_at)
    drop_timers(run)


def _agent_called(run: Run, event: AgentCalled) -> None:
    agent = run.agents[event.agent]
    frame = Frame(event.then, agent.conversation, agent.cwd, agent.visits, agent.model, agent.effort)
    agent.stack = agent.stack or []
    agent.stack.append(frame)
    agent.counts = {}
    if event.tag == "function":
        agent.conversation = None
        agent.model, agent.effort = event.model or agent.model, event.effort or agent.effort
    _enter(run, agent, event.state, event.input)
    set_status(run, agent, READY)
    drop_timers(run)


def _agent_returned(run: Run, event: AgentReturned) -> None:
    agent = run.agents[event.agent]
    assert agent.stack is not None
    frame = agent.stack.pop()
    agent.conversation, agent.cwd, agent.counts = frame.conversation, frame.cwd, frame.visits
    agent.model, agent.effort = frame.model, frame.effort
    _enter(run, agent, event.state, event.result)
    set_status(run, agent, READY)
    drop_timers(run)


def _agent_woke(run: Run, event: AgentWoke) -> None:
    agent = run.agents[event.agent]
    agent.visit.wake_at = 0.0
    set_status(run, agent, READY)
    drop_timers(run)


def _agent_retried(run: Run, event: AgentRetried) -> None:
    agent = run.agents[event.agent]
    visit = agent.visit
    visit.failures = visit.reminders = visit.turn = visit.gate_tries = 0
    visit.stuck, visit.freshened, visit.given_up = None, False, False
    visit.cost, visit.held, visit.deaths = 0.0, "", 0
    if visit.pending:
        visit.pending = replace(visit.pending, again=False, failures=0)
    if event.fresh:
        agent.conversation = None
        visit.reminder, visit.reminded_for = "", "rejected"
    at, visit.asleep = wakes_at(run, visit) if visit.asleep else 0.0, 0.0
    sleep_or_go(run, agent, at)
    drop_timers(run)


def _agent_failed(run: Run, event: AgentFailed) -> None:
    agent = run.agents[event.agent]
    agent.visit.stuck = Stuck(event.kind, event.error)
    agent.visit.given_up = event.kind == "given up"
    agent.visit.wake_at, agent.visit.rest, agent.visit.asleep = 0.0, None, 0.0
    set_status(run, agent, FAILED)
    drop_timers(run)


def _agent_paused(run: Run, event: AgentPaused) -> None:
    agent = run.agents[event.agent]
    agent.visit.stuck = Stuck(event.kind, event.reason, tuple(event.tools), event.backend)
    agent.visit.asleep = agent.visit.wake_at if agent.status == SLEEPING else 0.0
    agent.visit.wake_at = 0.0
    set_status(run, agent, PAUSED)
    drop_timers(run)


def _agent_held(run: Run, event: AgentHeld) -> None:
    hold(run, run.agents[event.agent], event.pool)


# --- waits and asks


def _wait_started(run: Run, event: WaitStarted) -> None:
    agent = run.agents[event.agent]
    agent.visit.rest = Rest(
        event.state,
        input=event.input,
        timeout_state=event.timeout_state,
        failed_state=event.failed_state,
        failures=event.failures,
    )
    set_timer(run, agent, event.deadline)
    set_status(run, agent, WAITING)
    drop_timers(run)


def _wait_ended(run: Run, event: WaitEnded) -> None:
    agent = run.agents[event.agent]
    results, rest = _collect(run, agent), agent.visit.rest
    if not (rest and (rest.failed_state or rest.failures)):
        unexpected = [one.agent for one in results if one.status == "failed"]
        run.unhandled += len(unexpected)
        run.faults.update(dict.fromkeys(unexpected))
    given = rest.input if rest else None
    visit = _enter(run, agent, event.state, given or "")
    visit.results, visit.results_are_input = results, given is None
    set_status(run, agent, READY)
    drop_timers(run)


def _ask_started(run: Run, event: AskStarted) -> None:
    agent = run.agents[event.agent]
    run.questions = event.number
    agent.visit.rest = Rest(
        event.state,
        question=event.question,
        timeout_state=event.timeout_state,
        number=run.questions,
        approve=event.approve,
        asked_at=run.now,
        choices=tuple(event.choices),
        files=tuple(event.files),
    )
    set_timer(run, agent, event.deadline)
    set_status(run, agent, ASKING)
    drop_timers(run)


def _ask_ended(run: Run, event: AskEnded) -> None:
    agent = run.agents[event.agent]
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
            outcome = Outcome(name, child.state, "failed", "", child.error, label=child.label)
            set_status(run, child, "")
            agent.alive -= 1  # leaving FAILED had counted it alive
            del run.agents[name]
            run.lost += 1
            keep_outcome(run, outcome)
            results.append(outcome)
        elif child:
            left[name] = None
        else:
            results.append(run.outcomes[name])
    agent.children = left or None
    return results


def _enter(run: Run, agent: Agent, state: str, text: str) -> Visit:
    """Begin a visit and discard what belonged to the previous one."""
    if agent.visit.seal:
        gate_changes.hand_on(run, agent.visit.seal)
    if agent.entered:
        agent.counts = counts = agent.visits
        counts[state] = counts.get(state, 0) + 1
    agent.visit = visit = Visit(state, text, run.now)
    agent.entered += 1
    if state.endswith(".md"):
        agent.prompted = agent.prompted or {}
        agent.prompted[state] = agent.prompted.get(state, 0) + 1
    return visit


_CHANGES: dict[type, Change] = {
    RunStarted: _run_started,
    RunResumed: _run_resumed,
    RunStopped: _run_stopped,
    RunEnded: _run_ended,
    LeftoversEnded: _leftovers_ended,
    ProgramAdded: _program_added,
    RequestTaken: lambda run, event: keep_request(run, event.request),
    JournalCut: _journal_cut,
    ClockSet: lambda run, event: set_clock(run, event.seconds),
    LimitsChanged: _limits_changed,
    RunMoved: _run_moved,
    WorkflowChanged: _workflow_changed,
    TreeMade: _tree_made,
    WorkSaved: _work_saved,
    BackendClosed: _backend_closed,
    BackendOpened: lambda run, event: (probe if event.probing else reopen)(run, event.backend),
    StepStarted: step_changes.started,
    SessionNamed: step_changes.named,
    StepFinished: step_changes.finished,
    StepRefused: step_changes.refused,
    StepFailed: step_changes.failed,
    StepInterrupted: step_changes.interrupted,
    SealEnded: gate_changes.sealed,
    TransitionHeld: gate_changes.held,
    GateEnded: gate_changes.checked,
    ReviewEnded: gate_changes.reviewed,
    EvaluatorEnded: gate_changes.evaluated,
    AgentStarted: _agent_started,
    AgentEnded: _agent_ended,
    AgentMoved: _agent_moved,
    AgentCalled: _agent_called,
    AgentReturned: _agent_returned,
    AgentWoke: _agent_woke,
    AgentRetried: _agent_retried,
    AgentFailed: _agent_failed,
    AgentPaused: _agent_paused,
    AgentHeld: _agent_held,
    WaitStarted: _wait_started,
    WaitEnded: _wait_ended,
    AskStarted: _ask_started,
    AskEnded: _ask_ended,
}
"""One function per event; a test fails when an event has none."""
