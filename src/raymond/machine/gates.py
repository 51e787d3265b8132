"""What a gate does to its visit: its seal is taken before the work begins, and what follows when it has run.

That is the transition that it held back, another turn of the agent, or a failure.
"""

from msgspec.structs import replace

from raymond.language import policy
from raymond.language.policy import Policy
from raymond.language.refusal import Refusal
from raymond.machine import budget, transitions
from raymond.machine.agent import SCRIPTS, Agent
from raymond.machine.events import AgentMoved, AgentPaused, Event, GateEnded, ReviewEnded, SealEnded, StepStarted
from raymond.machine.failures import brief
from raymond.machine.inputs import Checked, SealTaken
from raymond.machine.placed_workflow import PlacedWorkflow, rules_of
from raymond.machine.run import Run, pool_of
from raymond.machine.step_events import COULD_NOT_START, GREEN, PASSED, TO_REVIEW
from raymond.machine.transitions import Landing

_MOST_OTHERS = 5
"""Other agents that are named."""
TRIES = 3
"""How often an agent is told that its gate is red, unless its policy says otherwise."""
TIMEOUT = 600.0
"""Seconds for one command of a gate, unless the policy says otherwise."""
RERUNS = 1
"""How often a red command runs again before anybody hears of it, unless the policy says otherwise."""


def begin(run: Run, agent: Agent) -> StepStarted:
    """The start of a gate."""
    return StepStarted(agent=agent.id, step=run.steps + 1, attempt=agent.visit.checks + 1, phase="gate")


def follow(run: Run, placed: PlacedWorkflow, input: Checked) -> list[Event]:
    """What follows from a gate that ended."""
    agent = run.agents[input.agent]
    rules = rules_of(run, placed, agent)
    if input.verdict == PASSED:
        return [_ended(agent, input), *_released(run, placed, agent, input.time)]
    if input.verdict == COULD_NOT_START:
        return [_ended(agent, input), *transitions.fail(run, placed, agent, "gate", input.reason)]
    is_to_review = input.verdict in TO_REVIEW
    if is_to_review and (others := _others(run, agent)):
        input = replace(input, reason=f"{input.reason} (also at work there: {', '.join(others)})")
    if _can_be_told(run, rules, agent) and not (is_to_review and agent.visit.asked_why):
        return [_ended(agent, input, told=True)]
    if is_to_review:
        return [_ended(agent, input), *_review(placed, agent, rules, input)]
    overspent = budget.spent(rules, agent, 0.0)
    reason = f"{input.reason}; {overspent}" if overspent else input.reason
    return [_ended(agent, input), *_fail(run, placed, agent, rules, reason, input.output)]


def _ended(agent: Agent, input: Checked, *, told: bool = False) -> GateEnded:
    return GateEnded(
        agent=agent.id,
        step=agent.step,
        verdict=input.verdict,
        command=brief(input.command),
        exit_code=input.exit_code,
        seconds=round(input.seconds, 3),
        flaky=input.flaky,
        reason=brief(input.reason),
        output=input.output,
        told=told,
        as_before=_as_before(agent, input),
        changes=list(input.changes),
        digest=input.digest,
        twin=input.twin,
        review=input.review,
        seal=input.seal,
        tree=input.tree,
        commit=input.commit,
        vouched=input.vouched,
        wrote=list(input.wrote),
        offset=input.spent.offset,
    )


def _others(run: Run, agent: Agent) -> list[str]:
    """The agents that have worked in the same directory since this visit began, and may have changed it too."""
    cwd = agent.cwd or run.start.cwd
    found = (one for one in run.agents.values() if one is not agent and (one.cwd or run.start.cwd) == cwd)
    return [one.id for one in found if one.began >= agent.visit.since][:_MOST_OTHERS]


def _as_before(agent: Agent, input: Checked) -> bool:
    """Whether the check shows nothing new: red as it was, or green as it was with no test added."""
    before = agent.visit.before
    if input.verdict == PASSED:
        return before == GREEN and not input.new_tests
    return bool(before and input.sign) and before.endswith(f"[{input.sign}]")


def _released(run: Run, placed: PlacedWorkflow, agent: Agent, time: float) -> list[Event]:
    """The transition that was held back; what had permitted it may have changed since."""
    pending = agent.visit.pending
    assert pending is not None, f"{agent.id} has no gate"
    if pending.evaluated:
        return []  # its evaluator comes next
    output = pending.output if policy.keeps_output(rules_of(run, placed, agent)) else None
    found = transitions.follow(run, placed, agent, pending.asked, time=time, directories=pending.places, output=output)
    return transitions.fail(run, placed, agent, "gate", found.reason) if isinstance(found, Refusal) else found


def _can_be_told(run: Run, rules: Policy, agent: Agent) -> bool:
    """Whether there is an agent to tell, with tries and money left; a script cannot be told anything."""
    tries = TRIES if rules.gate_tries is None else rules.gate_tries
    is_script = pool_of(run, agent.state) == SCRIPTS
    return not is_script and agent.visit.gate_tries < tries and not budget.spent(rules, agent, 0.0)


def _fail(run: Run, placed: PlacedWorkflow, agent: Agent, rules: Policy, reason: str, output: str) -> list[Event]:
    """The visit ends red: go to `on_fail`, else it has failed."""
    if not rules.on_fail:
        return transitions.fail(run, placed, agent, "gate", reason)
    moved = _move(placed, agent, "on_fail", rules.on_fail, reason, output)
    if isinstance(moved, Refusal):
        return transitions.fail(run, placed, agent, "gate", f"{reason}; then on_fail: {moved.reason}")
    return [moved]


def _review(placed: PlacedWorkflow, agent: Agent, rules: Policy, input: Checked) -> list[Event]:
    """A person says whether it counts: go to `on_review`, else wait."""
    if rules.on_review:
        moved = _move(placed, agent, "on_review", rules.on_review, input.reason, input.output)
        if not isinstance(moved, Refusal):
            return [moved]
    accepted = agent.visit.accepted
    again = "this is not what was accepted before: " if accepted and accepted != input.digest else ""
    return [AgentPaused(agent=agent.id, kind="review", reason=brief(f"{again}{input.reason}"))]


def _move(placed: PlacedWorkflow, agent: Agent, tag: str, state: str, reason: str, output: str) -> AgentMoved | Refusal:
    landing = transitions.land(placed, agent.visits, state)
    if not isinstance(landing, Landing):
        return landing
    return AgentMoved(
        agent=agent.id,
        tag=tag,
        state=landing.state,
        error=brief(reason),
        gate=output,
        instead_of=landing.instead_of,
    )


def decided(run: Run, placed: PlacedWorkflow, agent: Agent, request: str, *, accepted: bool) -> list[Event]:
    """What follows when a person has looked at the change of a check; `request` is the reason for a rejection."""
    review = agent.visit.review
    assert review is not None, f"{agent.id} has nothing to review"
    ended = ReviewEnded(agent=agent.id, accepted=accepted, digest=review.digest, reason=brief(request))
    if accepted or pool_of(run, agent.state) != SCRIPTS:
        return [ended]
    rules = rules_of(run, placed, agent)
    return [ended, *_fail(run, placed, agent, rules, f"a person rejected the change: {request}".rstrip(": "), "")]


# What decides it is taken down


def is_seal_due(rules: Policy, agent: Agent) -> bool:
    """Whether the visit has a gate, and nobody has taken down what decides it."""
    return bool(rules.gate) and agent.visit.seal is None and not agent.visit.turn


def begin_seal(run: Run, agent: Agent) -> StepStarted:
    """The start of it."""
    return StepStarted(agent=agent.id, step=run.steps + 1, phase="seal")


def follow_seal(run: Run, placed: PlacedWorkflow, input: SealTaken) -> list[Event]:
    """The work can begin; without a seal, no check of it would be worth anything."""
    agent = run.agents[input.agent]
    ended = SealEnded(
        agent=agent.id,
        step=agent.step,
        seal=input.seal,
        sealed=input.files,
        commit=input.commit,
        seconds=round(input.seconds, 3),
        reason=brief(input.reason),
        before=brief(input.before),
        offset=input.spent.offset,
    )
    if input.seal:
        return [ended]
    return [ended, *transitions.fail(run, placed, agent, "gate", input.reason)]
