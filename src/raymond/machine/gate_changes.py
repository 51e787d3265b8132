"""What seals, gates, reviews and evaluators change in a run."""

from msgspec.structs import replace

from raymond.machine.agent import READY, GateResult, Pending, Review, Sealed
from raymond.machine.run import Run, drop_timers, set_status
from raymond.machine.step_changes import ended
from raymond.machine.step_events import (
    COULD_NOT_START,
    PASSED,
    TO_REVIEW,
    EvaluatorEnded,
    GateEnded,
    ReviewEnded,
    SealEnded,
    TransitionHeld,
)

AS_BEFORE = " (it was red in the same way before you began)"


def sealed(run: Run, event: SealEnded) -> None:
    """What decides the gate was taken down, so the work can begin."""
    agent = run.agents[event.agent]
    ended(run, agent, event)
    if event.seal:
        cwd = agent.cwd or run.start.cwd
        agent.visit.seal, agent.visit.deaths = Sealed(event.step, cwd, event.seal), 0
        agent.visit.before = event.before
        set_status(run, agent, READY)


def held(run: Run, event: TransitionHeld) -> None:
    """What it asks for waits for the gate, or the evaluator."""
    agent = run.agents[event.agent]
    agent.visit.pending = Pending(
        tuple(event.asked),
        event.places,
        gate=event.gated,
        evaluated=event.evaluated,
        judge=event.judge,
        output=event.output,
        files=tuple(event.files),
    )
    agent.visit.deaths = 0
    set_status(run, agent, READY)


def checked(run: Run, event: GateEnded) -> None:
    """The gate has ended; if it does not count, the agent goes on in the same conversation when it is told so."""
    agent = run.agents[event.agent]
    visit = agent.visit
    ended(run, agent, event)
    visit.deaths = 0
    if event.verdict == COULD_NOT_START:
        return  # it is checked again when somebody has mended the gate
    visit.checked = _result(event)
    run.vouched = event.vouched or run.vouched
    if event.verdict == PASSED and run.red.get(agent.id) == agent.state:
        del run.red[agent.id]
    if event.verdict == PASSED and visit.seal:
        run.seals.pop(visit.seal.cwd, None)
    if event.verdict == PASSED and visit.pending and visit.pending.evaluated:
        visit.pending, visit.seal, visit.review = replace(visit.pending, gate=False, passed=True), None, None
        set_status(run, agent, READY)
        return
    is_green_at_most = event.verdict in TO_REVIEW
    visit.turn, visit.interrupted, visit.review = 0, False, None
    if is_green_at_most:
        visit.review = Review(event.step, event.verdict, event.digest, event.review, tuple(event.changes))
        visit.asked_why = visit.asked_why or event.told
    if event.told or not is_green_at_most:
        visit.pending = None  # otherwise a person may still say that it counts
    if event.verdict == PASSED:
        visit.seal = None
    else:
        reason = f"{event.reason}{AS_BEFORE}" if event.as_before else event.reason
        visit.reminder = f"{reason}\n{event.output}"
        visit.reminded_for = "review" if is_green_at_most else "gate"
        visit.tries += 1
    if event.told:
        visit.gate_tries += 1
        set_status(run, agent, READY)


def _result(event: GateEnded) -> GateResult:
    return GateResult(
        event.verdict,
        event.step,
        event.command,
        event.exit_code,
        event.seconds,
        event.reason,
        event.flaky,
        event.as_before,
        tuple(event.changes),
        tuple(event.wrote),
        event.digest,
        event.review,
        event.tree,
        event.commit,
    )


def evaluated(run: Run, event: EvaluatorEnded) -> None:
    """The evaluator has ended; what it was asked about counts now, unless it is asked again or nothing follows."""
    agent = run.agents[event.agent]
    visit = agent.visit
    ended(run, agent, event)
    visit.deaths = 0
    if event.decided:
        visit.pending, visit.turn, visit.interrupted = None, 0, False
    elif visit.pending:
        visit.pending = replace(visit.pending, again=event.again, tries=visit.pending.tries + 1)
    if event.again:
        set_status(run, agent, READY)


def reviewed(run: Run, event: ReviewEnded) -> None:
    """A person has looked: the gate runs again, or the agent is told what is not wanted."""
    agent = run.agents[event.agent]
    visit = agent.visit
    visit.review, visit.stuck = None, None
    if event.accepted:
        visit.accepted = event.digest
    else:
        visit.pending = None
        visit.reminder, visit.reminded_for = f"a person rejected the change: {event.reason}".rstrip(": "), "review"
    set_status(run, agent, READY)
    drop_timers(run)


def hand_on(run: Run, seal: Sealed) -> None:
    """A visit that ends without a green gate leaves its seal to the next one in its directory; the older one holds."""
    run.seals[seal.cwd] = min(seal.step, run.seals.get(seal.cwd, seal.step))
