"""The state machine: facts in, facts out; no I/O, no clock, no randomness.

    decide(run, placed, input)  -> [event]   what follows from what came in
    evolve(run, event)                       what is then true (evolve.py)
    owed(run)                   -> [agent]   whose step the driver must start next (schedule.py)

The driver does four things: it starts the steps that are owed, passes their results to `decide`, appends the
events to the journal as one decision, and applies them with `evolve`. Nothing follows from a decision before it
is in the journal. So recovery is not a special case: read the journal, fold it, settle the steps that were running,
and do what is owed.

Every input carries its time. Ids are derived, so that the same inputs give the same events: a session is
uuid5(key of the run, step and turn), a forked agent is named after its parent and a counter. Whatever an agent or a
script says, `decide` does not raise: what it cannot accept becomes a refusal that says what would be right.

What an agent asks for passes, in this order: reading (tags.py), the policy of its state, the names of states and
directories, its gate (gates.py), its evaluator (evaluators.py), then the transition itself (transitions.py). A
transition enters a state through `transitions.land`, which counts visits and may lead to `then` instead. An agent that
ends or fails may end the wait of its parent in the same decision.
"""

from typing import Any, assert_never

from raymond.language import policy
from raymond.language.policy import Policy
from raymond.language.reading import Reading
from raymond.language.refusal import Refusal
from raymond.language.tags import Transition
from raymond.machine import budget, closing, evaluators, failures, gates, transitions
from raymond.machine.agent import ASKING, FAILED, SCRIPTS, SLEEPING, Agent
from raymond.machine.events import (
    ZERO,
    AgentHeld,
    AgentPaused,
    AgentStarted,
    AgentWoke,
    BackendOpened,
    Event,
    RunEnded,
    RunStarted,
    RunStopped,
    SessionNamed,
    StepFailed,
    StepFinished,
    StepInterrupted,
    StepRefused,
    StepStarted,
    TransitionHeld,
    is_end,
)
from raymond.machine.failures import CLASSES, Kind
from raymond.machine.inputs import (
    Begin,
    Checked,
    Failure,
    Input,
    Interruption,
    Judged,
    Named,
    Output,
    SealTaken,
    Spending,
    Started,
    Stop,
    Tick,
)
from raymond.machine.inputs import cost_of as cost_of
from raymond.machine.placed_workflow import PlacedWorkflow, rules_of
from raymond.machine.placed_workflow import late_problem as late_problem
from raymond.machine.run import Run, pool_of
from raymond.machine.run import session_of as session_of
from raymond.machine.schedule import fails_asks, over_at, reached, stop_at
from raymond.machine.step_changes import unpaid


def begin(start: RunStarted) -> list[Event]:
    """The first decision of a run."""
    return [start, AgentStarted(agent="main", state=start.entry, input=start.input)]


def decide(run: Run, placed: PlacedWorkflow, input: Input) -> list[Event]:
    """What follows from `input`."""
    match input:
        case Begin():
            return _begin(run, placed, run.agents[input.agent])
        case Output():
            return _with_limits(run, input.spent, _output(run, placed, input))
        case Started():
            return closing.started(run, run.agents[input.agent], input.time)
        case Named():
            agent = run.agents[input.agent]
            return [SessionNamed(agent=agent.id, step=agent.step, session=input.session)]
        case Failure() if evaluators.is_due(run.agents[input.agent]):
            return _with_limits(run, input.spent, evaluators.fail(run, placed, input))
        case Failure():
            return _with_limits(run, input.spent, _failure(run, placed, input))
        case Interruption():
            return _with_limits(run, input.spent, _interruption(run, placed, input))
        case SealTaken():
            return gates.follow_seal(run, placed, input)
        case Checked():
            return gates.follow(run, placed, input)
        case Judged():
            return _with_limits(run, input.spent, evaluators.follow(run, placed, input))
        case Tick():
            return _tick(run, placed, input.time)
        case Stop():
            return [] if run.stop or run.final_status else [input.how]
        case _:
            assert_never(input)


def _begin(run: Run, placed: PlacedWorkflow, agent: Agent) -> list[Event]:
    visit = agent.visit
    if visit.pending:
        return evaluators.begin(run, placed, agent) if evaluators.is_due(agent) else [gates.begin(run, agent)]
    if not visit.turn and (wrong := late_problem(run, placed, agent)):
        return transitions.fail(run, placed, agent, "gate", wrong)
    rules = rules_of(run, placed, agent)
    if gates.is_seal_due(rules, agent):
        return [gates.begin_seal(run, agent)]
    return [_begin_step(run, rules, agent)]


def _begin_step(run: Run, rules: Policy, agent: Agent) -> StepStarted | AgentHeld:
    visit = agent.visit
    again = visit.turn > 0  # a reminder is another turn of the same step
    step = agent.step if again else run.steps + 1
    turn = visit.turn + 1 if again else 1
    attempt = visit.attempt if again else visit.attempt + 1
    pool = pool_of(run, agent.state)
    if pool == SCRIPTS:
        return StepStarted(agent=agent.id, step=step, attempt=attempt)
    model = rules.model or agent.model or run.start.model
    closed = f"{pool}/{model or 'default'}"
    if closed in run.closed and not visit.held:
        return AgentHeld(agent=agent.id, pool=closed)
    return StepStarted(
        agent=agent.id,
        step=step,
        attempt=attempt,
        turn=turn,
        backend=pool,
        session=session_of(run, step, turn),
        base=agent.session if agent.remembers(pool) else "",
        model=model,
        cap=round(budget.cap(run, agent, rules), 4),
    )


def _output(run: Run, placed: PlacedWorkflow, input: Output) -> list[Event]:
    agent = run.agents[input.agent]
    rules = rules_of(run, placed, agent)
    asked = meant(rules, input.reading)
    problem = _forbidden(rules, input.reading, asked)
    if input.denied and rules.on_denied == "pause":
        return _pause_denied(run, agent, input)
    if not problem:
        follow = transitions.follow(
            run,
            placed,
            agent,
            asked,
            time=input.time,
            directories=input.directories,
            files=input.files,
            output=input.text if policy.keeps_output(rules) else None,
        )
        if isinstance(follow, list):
            spent = cost_of(input.spent, input.denied)
            done = StepFinished(agent=agent.id, step=agent.step, session=input.session, **spent)
            held = _held(placed, rules, agent, asked, input)
            return [done, *closing.opened(run, agent), *([held] if held else follow)]
        problem = follow
    return _refuse(run, placed, agent, input, problem)


def _held(
    placed: PlacedWorkflow, rules: Policy, agent: Agent, asked: tuple[Transition, ...], input: Output
) -> TransitionHeld | None:
    """A permitted transition that has to pass the gate of its state, or that its evaluator decides about."""
    is_gated = policy.is_gated(rules, asked)
    if not is_gated and not rules.evaluator:
        return None
    places = {name: place for name, place in input.directories.items() if isinstance(place, str)}
    more: dict[str, Any] = {"output": input.text} if policy.keeps_output(rules) else {}
    more |= evaluators.held(placed, placed.workflow.states[agent.state], input)
    return TransitionHeld(
        agent=agent.id, asked=transitions.resolved(placed, asked), places=places, gated=is_gated, **more
    )


def meant(rules: Policy, reading: Reading) -> tuple[Transition, ...]:
    """The transitions the output stands for: what it says, or what its policy implies; none when it is rejected."""
    silent = reading.refused is not None and reading.refused.kind == "none"
    if rules.force_implicit or silent:
        implied = policy.said(rules, reading.line) or policy.implicit(rules)
        if implied:
            return (implied,)
    return reading.transitions


def _forbidden(rules: Policy, reading: Reading, asked: tuple[Transition, ...]) -> Refusal | None:
    if reading.refused and not asked:
        return reading.refused
    return policy.permit(rules, asked)


def _pause_denied(run: Run, agent: Agent, input: Output) -> list[Event]:
    """`on_denied: pause`: the reply waits until a person has decided about the tools."""
    tools = list(dict.fromkeys(input.denied))
    refused = StepRefused(
        agent=agent.id,
        step=agent.step,
        session=input.session,
        blocked=True,
        **cost_of(input.spent, input.denied),
    )
    return [refused, *closing.opened(run, agent), AgentPaused(agent=agent.id, kind="denied", tools=tools)]


def _refuse(run: Run, placed: PlacedWorkflow, agent: Agent, input: Output, problem: Refusal) -> list[Event]:
    spent = cost_of(input.spent, input.denied)
    overspent = budget.spent(rules_of(run, placed, agent), agent, input.spent.cost)
    if agent.pool != SCRIPTS and agent.visit.reminders < failures.REMINDERS and not overspent:
        refused = StepRefused(
            agent=agent.id,
            step=agent.step,
            reason=failures.brief(problem.reason),
            hint=failures.brief(problem.hint),
            session=input.session,
            **spent,
        )
        return [refused, *closing.opened(run, agent)]
    kind: Kind
    reason = failures.brief(problem.reason)
    if agent.pool == SCRIPTS:
        kind, error = "script", reason
    elif overspent:
        kind, error = "cap", f"{reason}; {overspent}"
    else:
        kind, error = "unreadable", f"{reason} (asked {failures.REMINDERS + 1} times)"
    failed = StepFailed(agent=agent.id, step=agent.step, kind=kind, error=error, **spent)
    return [failed, *closing.opened(run, agent), *transitions.fail(run, placed, agent, kind, error)]


def _failure(run: Run, placed: PlacedWorkflow, input: Failure) -> list[Event]:
    agent = run.agents[input.agent]
    rules = rules_of(run, placed, agent)
    overspent = budget.spent(rules, agent, input.spent.cost)
    if input.kind == "cap" and not overspent and input.spent.cost:
        return [_continue(agent, input), *closing.opened(run, agent)]
    response = failures.respond(
        input.kind, failures=agent.visit.failures, retries=_retries(rules, agent), freshened=agent.visit.freshened
    )
    if overspent and response.again and not response.closes:
        response = failures.Response(charged=True)
    error = failures.brief(input.error)
    error = f"{error}; {overspent}" if overspent and not response.again else error
    failed = StepFailed(
        agent=agent.id,
        step=agent.step,
        kind=input.kind,
        error=error,
        exit_code=input.exit_code,
        output=input.output,
        charged=response.charged,
        fresh=response.fresh,
        again=response.again,
        retry_at=round(input.time + response.wait, 3) if response.wait else ZERO,
        **cost_of(input.spent, input.denied),
    )
    if response.closes:
        return [failed, *closing.close(run, agent, input)]
    freed = closing.freed(run, agent)
    if response.again:
        return [failed, *freed]
    return [failed, *freed, *transitions.fail(run, placed, agent, input.kind, error)]


def _interruption(run: Run, placed: PlacedWorkflow, input: Interruption) -> list[Event]:
    """The visit runs again, unless it seems to be what its drivers die of: that would be paid for without end."""
    agent = run.agents[input.agent]
    cut = StepInterrupted(
        agent=agent.id, step=agent.step, by_death=input.by_death, cause=input.cause, **cost_of(input.spent)
    )
    if not input.by_death or agent.visit.deaths + 1 < failures.DEATHS:
        return [cut]
    if input.cause:
        error = f"{input.cause}; the visit was cut off {failures.DEATHS} times in a row"
    else:
        error = f"the process that drives the run died {failures.DEATHS} times in a row during this visit"
    return [cut, *transitions.fail(run, placed, agent, "crash", error)]


def _continue(agent: Agent, input: Failure) -> StepRefused:
    """The turn reached its share and more may be left: the same conversation continues with another share."""
    return StepRefused(
        agent=agent.id,
        step=agent.step,
        session=input.session or agent.turn_session,
        capped=True,
        **cost_of(input.spent, input.denied),
    )


def _retries(rules: Policy, agent: Agent) -> int:
    if rules.retries is not None:
        return rules.retries
    return failures.SCRIPT_RETRIES if agent.pool == SCRIPTS else failures.PROMPT_RETRIES


def _with_limits(run: Run, spent: Spending, events: list[Event]) -> list[Event]:
    """`events`, and a stop when they reach a limit of the run."""
    limits = run.limits
    if not (limits.max_iterations or limits.budget or limits.max_turns or spent.unknown):
        return events
    iterations, turns, cost = 0, 0, 0.0
    for event in events:
        if not is_end(event):
            continue
        cost += unpaid(run.paid, event)
        if isinstance(event, StepFinished):
            iterations += 1
        elif isinstance(event, StepFailed) and CLASSES[event.kind].counted:
            iterations += event.phase != "evaluate"
        elif isinstance(event, StepFailed):
            turns -= run.agents[event.agent].pool != SCRIPTS
    stop = reached(run, iterations=iterations, cost=cost, turns=turns, unpriced=spent.unknown)
    if not stop or run.stop or any(isinstance(event, RunStopped) for event in events):
        return events
    return [*events, stop]


def _tick(run: Run, placed: PlacedWorkflow, now: float) -> list[Event]:
    """The next thing that is due at `now`; empty when nothing is."""
    for backend, closed in run.closed.items():
        if closed.until and closed.until <= now:
            return [BackendOpened(backend=backend, probing=True)]
    if run.limits.max_time and not run.stop and not run.final_status and over_at(run) <= now:
        return [stop_at(run, "time")]
    if fails_asks(run):
        return transitions.fail_ask(run, placed, next(one for one in run.agents.values() if one.status == ASKING))
    if run.timers and run.timers[0][0] <= now:
        agent = run.agents[run.timers[0][1]]
        if agent.status == SLEEPING:
            return [AgentWoke(agent=agent.id)]
        if agent.status == ASKING:
            return transitions.end_ask(run, placed, agent, "", timed_out=True)
        return transitions.end_wait(run, placed, agent, timed_out=True)
    if _over(run):
        return [RunEnded(status="failed" if run.failed_count or run.unhandled else "completed")]
    return []


def _over(run: Run) -> bool:
    """No agent is left to move."""
    return not run.final_status and run.begun is not None and len(run.agents) == run.statuses.get(FAILED, 0)
