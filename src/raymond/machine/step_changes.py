"""What the beginning and the end of a step change in a run."""

from collections.abc import Mapping

from msgspec.structs import replace

from raymond.machine.agent import DECIDING, READY, RUNNING, SCRIPTED, SCRIPTS, Agent, Conversation, backend_of
from raymond.machine.events import (
    SessionNamed,
    StepEnded,
    StepFailed,
    StepFinished,
    StepInterrupted,
    StepRefused,
    StepStarted,
)
from raymond.machine.failures import CLASSES
from raymond.machine.run import Run, set_status, sleep_or_go


def started(run: Run, event: StepStarted) -> None:
    """A script, a turn, a gate or an evaluator begins."""
    agent = run.agents[event.agent]
    visit = agent.visit
    visit.phase = event.phase
    if event.phase == "evaluate":
        _begin_evaluator(run, agent, event)
        return
    if event.phase:
        set_status(run, agent, RUNNING, SCRIPTS)
        visit.checks = event.attempt if event.phase == "gate" else visit.checks
        agent.step, agent.began = event.step, run.now
        run.steps = max(run.steps, event.step)
        return
    # The agent that waited for its model is the one that tries it.
    set_status(run, agent, RUNNING, visit.held or event.backend or SCRIPTS)
    visit.held, visit.attempt, visit.turn = "", event.attempt, event.turn
    if event.backend and event.step not in visit.turns:
        visit.turns = (*visit.turns, event.step)
    _begin(run, agent, event)


def _begin(run: Run, agent: Agent, event: StepStarted) -> None:
    agent.step, agent.cap, agent.began = event.step, event.cap, run.now
    agent.turn_session, agent.turn_base, agent.turn_model = event.session, event.base, event.model
    run.steps = max(run.steps, event.step)
    run.turns += bool(event.backend)
    run.scripted_turns += event.backend in SCRIPTED
    run.reserved += event.cap


def _begin_evaluator(run: Run, agent: Agent, event: StepStarted) -> None:
    """A second opinion: what the visit counts of the agent's own turns stays as it is."""
    set_status(run, agent, RUNNING, agent.visit.held or event.backend or SCRIPTS)
    agent.visit.held = ""
    pending = agent.visit.pending
    if pending and pending.judge and not pending.begun:
        agent.prompted = agent.prompted or {}
        agent.prompted[pending.judge] = agent.prompted.get(pending.judge, 0) + 1
        agent.visit.pending = replace(pending, begun=True)
    _begin(run, agent, event)


def named(run: Run, event: SessionNamed) -> None:
    """A backend says which conversation the running turn writes."""
    run.agents[event.agent].turn_session = event.session


def finished(run: Run, event: StepFinished) -> None:
    """Its output was read, and what it asks for is allowed."""
    agent = run.agents[event.agent]
    _remember(agent, event)
    ended(run, agent, event)
    run.iterations += 1


def refused(run: Run, event: StepRefused) -> None:
    """The agent is asked again in the same conversation."""
    agent = run.agents[event.agent]
    visit = agent.visit
    _remember(agent, event)
    ended(run, agent, event)
    visit.reminded_for = "capped" if event.capped else "blocked" if event.blocked else "rejected"
    visit.reminders += visit.reminded_for == "rejected"
    visit.tries += 1
    visit.reminder = f"{event.reason}\n{event.hint}" if event.hint else event.reason
    visit.interrupted, visit.deaths = False, 0
    set_status(run, agent, READY)


def _evaluator_failed(run: Run, agent: Agent, event: StepFailed) -> None:
    """The agent has done its work: it is no iteration, and only the evaluator is tried again."""
    visit = agent.visit
    if visit.pending:
        begun, charged = CLASSES[event.kind].begun, event.charged
        visit.pending = replace(
            visit.pending, tries=visit.pending.tries + begun, failures=visit.pending.failures + charged
        )
    visit.deaths = 0
    if event.again:
        sleep_or_go(run, agent, event.retry_at)


def failed(run: Run, event: StepFailed) -> None:
    """It ended without a usable reply."""
    agent = run.agents[event.agent]
    visit = agent.visit
    ended(run, agent, event)
    row = CLASSES[event.kind]
    run.turns -= not row.counted and agent.pool != SCRIPTS
    run.scripted_turns -= not row.counted and backend_of(agent.pool) in SCRIPTED
    if event.phase == "evaluate":
        _evaluator_failed(run, agent, event)
        return
    run.iterations += row.counted
    visit.turn, visit.output = 0, event.output
    visit.failures += event.charged
    if row.begun:
        visit.interrupted, visit.deaths = True, 0
        visit.tries += 1
    else:
        visit.attempt -= 1
    if event.fresh:
        agent.conversation = None
        visit.reminder, visit.reminded_for = "", "rejected"
        visit.freshened, visit.interrupted = True, False
    if event.again:
        sleep_or_go(run, agent, event.retry_at)


def interrupted(run: Run, event: StepInterrupted) -> None:
    """It was cut off; the visit runs again."""
    agent = run.agents[event.agent]
    ended(run, agent, event)
    if not agent.visit.phase:
        agent.visit.turn, agent.visit.interrupted = 0, True
    agent.visit.deaths = agent.visit.deaths + 1 if event.by_death else 0
    set_status(run, agent, READY)


def unpaid(paid: Mapping[int, float], event: StepEnded) -> float:
    """What a step has cost beyond what was `paid` for it when its end was lost."""
    return max(0.0, event.cost - paid[event.step]) if event.step in paid else event.cost


def _remember(agent: Agent, event: StepFinished | StepRefused) -> None:
    if event.session:
        agent.conversation = Conversation(backend_of(agent.pool), event.session, event.meter)


def ended(run: Run, agent: Agent, event: StepEnded) -> None:
    """Count the cost of a step that ended."""
    set_status(run, agent, DECIDING)
    if agent.cap:
        # Rounded: a tiny rest that stays reserved would make the last turn wait for ever.
        run.reserved = max(0.0, round(run.reserved - agent.cap, 4))
        agent.cap = 0.0
    if event.denied:
        for tool in event.denied:
            run.denied[tool] = run.denied.get(tool, 0) + 1
    if event.cost:
        _pay(run, agent, event)
    if run.paid:
        run.paid.pop(event.step, None)
    if event.estimated:
        run.estimated = agent.estimated = True
    run.unpriced += event.unknown
    run.tokens_in += event.tokens_in
    run.tokens_out += event.tokens_out


def _pay(run: Run, agent: Agent, event: StepEnded) -> None:
    agent.visit.cost += event.cost
    cost = unpaid(run.paid, event)
    agent.cost += cost
    run.cost += cost
    if backend_of(agent.pool) in SCRIPTED:
        agent.scripted += cost
        run.scripted += cost
