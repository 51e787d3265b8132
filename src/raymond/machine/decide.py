"""The state machine: facts in, facts out; no I/O, no clock, no randomness.

    decide(run, workspace, input)  -> [event]   what follows from what came in
    evolve(run, event)                       what is then true (evolution.py)
    owed(run)                   -> [agent]   whose step the driver must start next (schedule.py)

The driver does four things: it starts the steps that are owed, hands what came of them to `decide`, appends the
events to the journal as one decision, and lets them be true with `evolve`. Nothing follows from a decision before it
stands in the journal. So recovery is not a case: read the journal, fold it, settle the steps that were running, and
do what is owed.

Every input carries its time. Ids are derived, so that the same inputs give the same events: a session is
uuid5(key of the run, step and turn), a forked agent is named for its parent and a counter. Whatever an agent or a
script says, `decide` does not raise: what it cannot take becomes a refusal that says what would be right.

What an agent asks for passes, in this order: reading (tags.py), the policy of its state, the names of states and
directories, then the transition itself (moves.py). A transition enters a state through `moves.land`, which counts
visits and may lead to `then` instead. An agent that ends or fails may end the wait of its parent in the same decision.
"""

from typing import Any, assert_never

from raymond import durations
from raymond.language import policy
from raymond.language.policy import Policy
from raymond.language.reading import Reading
from raymond.language.refusal import Refusal
from raymond.language.tags import Transition
from raymond.machine import budget, failures, transitions
from raymond.machine.agent import ASKING, FAILED, SCRIPTS, SLEEPING, Agent, backend_of
from raymond.machine.events import (
    AgentHeld,
    AgentPaused,
    AgentStarted,
    AgentWoke,
    BackendClosed,
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
)
from raymond.machine.inputs import Begin, Failure, Input, Interruption, Named, Output, Spending, Stop, Tick
from raymond.machine.run import Run, pool_of, shut
from raymond.machine.schedule import over_at, reached
from raymond.machine.workspace import Workspace


def begin(start: RunStarted) -> list[Event]:
    """The first decision of a run."""
    return [start, AgentStarted(agent="main", state=start.entry, input=start.input)]


def decide(run: Run, workspace: Workspace, input: Input) -> list[Event]:
    """What follows from `input`."""
    match input:
        case Begin():
            return [_begin_step(run, workspace, run.agents[input.agent])]
        case Named():
            agent = run.agents[input.agent]
            return [SessionNamed(agent=agent.id, step=agent.step, session=input.session)]
        case Output():
            return _with_limits(run, input.spent, _output(run, workspace, input))
        case Failure():
            return _with_limits(run, input.spent, _failure(run, workspace, input))
        case Interruption():
            agent = run.agents[input.agent]
            cut = StepInterrupted(agent=agent.id, step=agent.step, **cost_of(input.spent))
            return _with_limits(run, input.spent, [cut])
        case Tick():
            return _tick(run, workspace, input.time)
        case Stop():
            return [] if run.stopped or run.ended else [RunStopped(kind=input.kind, reason=input.reason)]
        case _:
            assert_never(input)


def session_of(run: Run, step: int, turn: int) -> str:
    """The id of the conversation a turn writes; never the same twice."""
    from uuid import UUID, uuid5  # a run of scripts starts without it

    return str(uuid5(UUID(run.start.key), f"{step}.{turn}"))


def _begin_step(run: Run, workspace: Workspace, agent: Agent) -> StepStarted | AgentHeld:
    again = agent.turn > 0  # a reminder is another turn of the same step
    step = agent.step if again else run.steps + 1
    turn = agent.turn + 1 if again else 1
    attempt = agent.attempt if again else agent.attempt + 1
    pool = pool_of(run, agent.state)
    if pool == SCRIPTS:
        return StepStarted(agent=agent.id, step=step, attempt=attempt)
    rules = policy_of(workspace, agent.state)
    model = rules.model or agent.model or run.start.model
    closed = f"{pool}/{model or 'default'}"
    if closed in run.closed and not agent.held:
        return AgentHeld(agent=agent.id, pool=closed)
    base = agent.session if agent.backend == pool else ""
    return StepStarted(
        agent=agent.id,
        step=step,
        attempt=attempt,
        turn=turn,
        backend=pool,
        session=session_of(run, step, turn),
        base=base,
        model=model,
        cap=round(budget.cap(run, agent, rules), 4),
    )


def cost_of(spent: Spending, denied: tuple[str, ...] = ()) -> dict[str, Any]:
    """What the event of a step that ended says of its cost."""
    return {
        "denied": list(denied),
        "cost": spent.cost,
        "estimated": spent.estimated,
        "unknown": spent.unknown,
        "meter": spent.meter,
        "tokens_in": spent.tokens_in,
        "tokens_out": spent.tokens_out,
        "offset": spent.offset,
    }


def _output(run: Run, workspace: Workspace, input: Output) -> list[Event]:
    agent = run.agents[input.agent]
    rules = policy_of(workspace, agent.state)
    asked = meant(rules, input.reading)
    problem = _forbidden(rules, input.reading, asked)
    if input.denied and rules.on_denied == "pause":
        return _pause_denied(run, agent, input)
    if not problem:
        follow = transitions.follow(run, workspace, agent, asked, time=input.time, directories=input.directories)
        if not isinstance(follow, Refusal):
            spent = cost_of(input.spent, input.denied)
            done = StepFinished(agent=agent.id, step=agent.step, session=input.session, **spent)
            return [done, *_opened(run, agent), *follow]
        problem = follow
    return _refuse(run, workspace, agent, input, problem)


def meant(rules: Policy, reading: Reading) -> tuple[Transition, ...]:
    """The transitions the output stands for: what it says, or what its policy implies; none when it is refused."""
    silent = reading.refused is not None and reading.refused.kind == "none"
    if rules.force_implicit or silent:
        implied = policy.implicit(rules)
        if implied:
            return (implied,)
    return reading.transitions


def _forbidden(rules: Policy, reading: Reading, asked: tuple[Transition, ...]) -> Refusal | None:
    if reading.refused and not asked:
        return reading.refused
    return policy.permit(rules, asked)


def _pause_denied(run: Run, agent: Agent, input: Output) -> list[Event]:
    """The person wants to be asked when tools are refused: the reply waits for what they allow."""
    tools = ", ".join(dict.fromkeys(input.denied))
    refused = StepRefused(
        agent=agent.id,
        step=agent.step,
        reason=f"it was refused tools that it needs: {tools}",
        session=input.session,
        blocked=True,
        **cost_of(input.spent, input.denied),
    )
    flags = " ".join(f"--allow-tool '{tool}'" for tool in dict.fromkeys(input.denied))
    why = f"refused: {tools} (on_denied: pause); raymond resume {run.start.workflow_id} {flags}"
    return [refused, *_opened(run, agent), AgentPaused(agent=agent.id, reason=why)]


def _refuse(run: Run, workspace: Workspace, agent: Agent, input: Output, problem: Refusal) -> list[Event]:
    spent = cost_of(input.spent, input.denied)
    overspent = budget.spent(policy_of(workspace, agent.state), agent, input.spent.cost)
    if agent.pool != SCRIPTS and agent.reminders < failures.REMINDERS and not overspent:
        refused = StepRefused(
            agent=agent.id,
            step=agent.step,
            reason=problem.reason,
            hint=problem.hint,
            session=input.session,
            **spent,
        )
        return [refused, *_opened(run, agent)]
    if agent.pool == SCRIPTS:
        kind, error = "script", problem.reason
    elif overspent:
        kind, error = "cap", f"{problem.reason}; {overspent}"
    else:
        kind, error = "unreadable", f"{problem.reason} (asked {failures.REMINDERS + 1} times)"
    failed = StepFailed(agent=agent.id, step=agent.step, kind=kind, error=error, **spent)
    return [failed, *_opened(run, agent), *transitions.fail(run, workspace, agent, kind, error)]


def _opened(run: Run, agent: Agent) -> list[Event]:
    """A backend that answers is open; a turn begun before it was closed for longer proves nothing."""
    pools = dict.fromkeys((backend_of(agent.pool), agent.pool))
    return [BackendOpened(backend=pool) for pool in pools if _proves(run, pool)]


def _proves(run: Run, pool: str) -> bool:
    closed = run.closed.get(pool)
    return pool in run.probing or (closed is not None and closed.kind == "overload" and closed.until > 0)


def _failure(run: Run, workspace: Workspace, input: Failure) -> list[Event]:
    agent = run.agents[input.agent]
    rules = policy_of(workspace, agent.state)
    overspent = budget.spent(rules, agent, input.spent.cost)
    if input.kind == "cap" and not overspent and input.spent.cost:
        return [_go_on(agent, input), *_opened(run, agent)]
    response = failures.respond(
        input.kind, failures=agent.failures, retries=_retries(rules, agent), freshened=agent.freshened
    )
    if overspent and response.again and not response.closes:
        response = failures.Response(charged=True)
    error = f"{input.error}; {overspent}" if overspent and not response.again else input.error
    if input.kind == "session":
        error = f"{error}; raymond resume {run.start.workflow_id} --fresh goes on without it"
    failed = StepFailed(
        agent=agent.id,
        step=agent.step,
        kind=input.kind,
        error=error,
        exit_code=input.exit_code,
        charged=response.charged,
        fresh=response.fresh,
        again=response.again,
        **cost_of(input.spent, input.denied),
    )
    if response.closes:
        return [failed, *_close(run, agent, input)]
    if response.again:
        return [failed]
    return [failed, *transitions.fail(run, workspace, agent, input.kind, error)]


def _go_on(agent: Agent, input: Failure) -> StepRefused:
    """The turn reached its share, and there may be more: the same conversation goes on with another share."""
    return StepRefused(
        agent=agent.id,
        step=agent.step,
        reason="you were stopped at a limit of cost",
        session=input.session or agent.turn_session,
        capped=True,
        **cost_of(input.spent, input.denied),
    )


def _retries(rules: Policy, agent: Agent) -> int:
    if rules.retries is not None:
        return rules.retries
    return failures.SCRIPT_RETRIES if agent.pool == SCRIPTS else failures.PROMPT_RETRIES


def _close(run: Run, agent: Agent, input: Failure) -> list[Event]:
    """The infrastructure failed, not the work: the backend rests, no attempt is charged."""
    now = input.time
    backend = backend_of(agent.pool)
    if input.only_model:
        backend = f"{backend}/{agent.turn_model or 'default'}"
    closed = run.closed.get(backend)
    if input.kind in ("auth", "billing"):
        return _close_for_a_person(run, agent, input, now)
    if closed and (closed.until > now or shut(run, backend)):
        return []  # another turn has already said so, or a person has to open it
    before = closed if closed and closed.kind == input.kind else None
    since = before.since if before else now
    tries = before.tries + 1 if before else 0
    if input.kind == "overload" and now - since > run.start.patience:
        return _close_for_a_person(run, agent, input, since)
    # A reset that is over by the time it is heard of is no reason to wait as for one that nobody knows.
    retry_at = input.retry_at if input.retry_at < now + failures.LIMIT_LONGEST else 0.0
    unknown = input.kind == "limit" and not retry_at
    wait = failures.LIMIT_UNKNOWN if unknown else failures.overload_wait(tries)
    until = retry_at if retry_at > now else now + wait
    rest = BackendClosed(backend=backend, kind=input.kind, error=input.error, until=until, since=since, tries=tries)
    if input.kind == "limit" and until - since > run.start.max_wait:
        return [rest, *_stop(run, failures.too_long(backend, until - now, run.start.max_wait))]
    return [rest]


def _close_for_a_person(run: Run, agent: Agent, input: Failure, since: float) -> list[Event]:
    """Nothing will change by itself: the backend's agents pause and say what is wrong."""
    backend = backend_of(agent.pool)
    what = f"{backend} was overloaded for too long: {input.error}" if input.kind == "overload" else input.error
    shut_down = BackendClosed(backend=backend, kind=input.kind, error=input.error, since=since)
    queues = [queue for pool, queue in run.ready.items() if backend_of(pool) == backend]
    names = dict.fromkeys([agent.id, *(name for queue in queues for name in queue)])
    return [shut_down, *(AgentPaused(agent=name, reason=what) for name in names)]


def _with_limits(run: Run, spent: Spending, events: list[Event]) -> list[Event]:
    """`events`, and a stop when they reach a limit of the run."""
    if not (run.max_iterations or run.budget or run.max_turns or spent.unknown):
        return events
    ended = [event for event in events if isinstance(event, StepFinished | StepFailed)]
    vain = sum(isinstance(event, StepFailed) and event.kind in failures.UNCOUNTED for event in ended)
    reason = reached(run, iterations=len(ended) - vain, cost=spent.cost, turns=-vain, unpriced=spent.unknown)
    if not reason or any(isinstance(event, RunStopped) for event in events):
        return events
    return [*events, *_stop(run, reason)]


def _stop(run: Run, reason: str) -> list[Event]:
    return [] if run.stopped else [RunStopped(kind="limit", reason=reason)]


def _tick(run: Run, workspace: Workspace, now: float) -> list[Event]:
    """What is due at `now`, one thing at a time; nothing when nothing is."""
    for backend, closed in run.closed.items():
        if closed.until and closed.until <= now:
            return [BackendOpened(backend=backend, probing=True)]
    if run.max_time and not run.stopped and not run.ended and over_at(run) <= now:
        return _stop(run, f"max_time ({durations.show(run.max_time)}) is over")
    if run.timers and run.timers[0][0] <= now:
        agent = run.agents[run.timers[0][1]]
        if agent.status == SLEEPING:
            return [AgentWoke(agent=agent.id)]
        if agent.status == ASKING:
            return transitions.end_ask(run, workspace, agent, "", timed_out=True)
        return transitions.end_wait(run, workspace, agent, timed_out=True)
    if _over(run):
        return [RunEnded(status="failed" if run.failed else "completed")]
    return []


def _over(run: Run) -> bool:
    """No agent is left to move."""
    return not run.ended and run.started is not None and len(run.agents) == run.statuses.get(FAILED, 0)


def policy_of(workspace: Workspace, state: str) -> Policy:
    """What `state` may do and needs."""
    return workspace.workflow.states[state].policy
