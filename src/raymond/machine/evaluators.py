"""What follows from an evaluator: the transition that was held back, or another one that the policy allows.

It begins once the gate has passed. A judge is asked in a conversation of its own that nobody continues; the agent hears
nothing of it. What it chooses passes the gate too, if what the agent asked for had not to.
"""

from collections.abc import Sequence
from typing import Any

from raymond.language import evaluator, judges, policy
from raymond.language.evaluator import KEEP, Evaluator
from raymond.language.policy import Policy
from raymond.language.refusal import Refusal
from raymond.language.tags import Transition, renamed, targets
from raymond.language.workflow import State, resolve
from raymond.machine import budget, closing, failures, transitions
from raymond.machine.agent import SCRIPTED, SCRIPTS, Agent, Pending
from raymond.machine.events import (
    ZERO,
    AgentHeld,
    EvaluatorEnded,
    Event,
    RunStarted,
    StepFailed,
    StepStarted,
    TransitionHeld,
)
from raymond.machine.inputs import Failure, Judged, Output, cost_of
from raymond.machine.placed_workflow import PlacedWorkflow, rules_of
from raymond.machine.run import Run, judge_pool, session_of

LONGEST = 100_000
"""Characters of a final message that are evaluated: its last ones."""
SMALL = {"claude": "haiku"}
"""The small model of a backend."""
_LONGEST_SAID = 200
"""Characters of what a judge said that are journaled."""


def held(placed: PlacedWorkflow, state: State, input: Output) -> dict[str, Any]:
    """What is kept with a transition for the evaluator of its state; nothing when it has none."""
    found = state.policy.evaluator
    if found is None:
        return {}
    judge = judges.of_state(placed.workflow, state)
    files = [] if isinstance(input.files, Refusal) else list(input.files)
    known = {"judge": judge} if isinstance(judge, str) else {}
    return {"evaluated": True, "output": input.text, "files": files, **known}


def is_due(agent: Agent) -> bool:
    """Whether the next or the running step of an agent is its evaluator."""
    return agent.visit.pending is not None and not agent.visit.pending.gate


def model_of(start: RunStarted, backend: str, found: Evaluator, judge: State | None) -> str:
    """The model that judges; empty when nobody has named one, which only scripted replies can do without."""
    own = judges.own(judge, "model") if judge else ""
    return found.model or own or SMALL.get(backend, start.small_model)


def begin(run: Run, placed: PlacedWorkflow, agent: Agent) -> list[Event]:
    """The start of an evaluator, or what follows when it cannot be asked."""
    state = placed.workflow.states[agent.state]
    found, judge = state.policy.evaluator, judges.of_state(placed.workflow, state)
    if found is None:
        gone = Evaluator(default=KEEP)
        return _settle(run, placed, agent, gone, None, "the workflow has no evaluator here any more", run.now)
    attempt = _pending(agent).tries + 1
    if not judge:
        return [StepStarted(agent=agent.id, step=run.steps + 1, attempt=attempt, phase="evaluate")]
    if isinstance(judge, Refusal):
        return _settle(run, placed, agent, found, None, judge.reason, run.now)
    if overspent := budget.spent(state.policy, agent, 0.0):
        return _settle(run, placed, agent, found, None, f"the judge was not asked: {overspent}", run.now)
    pool = judge_pool(run, agent.state, judge)
    model = model_of(run.start, pool, found, placed.workflow.states[judge])
    if (closed := f"{pool}/{model or 'default'}") in run.closed and not agent.visit.held:
        return [AgentHeld(agent=agent.id, pool=closed)]
    started = StepStarted(
        agent=agent.id,
        step=run.steps + 1,
        attempt=attempt,
        phase="evaluate",
        backend=pool,
        session=session_of(run, run.steps + 1, 1),
        model=model,
        cap=round(budget.cap(run, agent, state.policy), 4),
    )
    return [started]


def follow(run: Run, placed: PlacedWorkflow, input: Judged) -> list[Event]:
    """What follows from an evaluator that ended."""
    agent = run.agents[input.agent]
    rules = rules_of(run, placed, agent)
    found = rules.evaluator or Evaluator(default=KEEP)
    verdict = None if input.problem else found.pick(input.said)
    opened = closing.opened(run, agent)
    if verdict is None and _can_ask_again(found, rules, agent, input):
        again = _ended(agent, input, said=input.said, again=True, reason=_unclear(found, input.said))
        return [again, *opened]
    problem = input.problem or ("" if verdict else _unclear(found, input.said))
    settled = _settle(run, placed, agent, found, verdict, problem, input.time, input)
    return [settled[0], *opened, *settled[1:]]


def fail(run: Run, placed: PlacedWorkflow, input: Failure) -> list[Event]:
    """What follows from an evaluator that ended without an answer: as for other turns, but the agent is not asked."""
    agent = run.agents[input.agent]
    state = placed.workflow.states[agent.state]
    overspent = budget.spent(state.policy, agent, input.spent.cost)
    response = failures.respond(
        input.kind, failures=_pending(agent).failures, retries=_retries(placed, state), freshened=True
    )
    if input.kind == "cap" and input.spent.cost:
        response = failures.Response(again=True)  # another share of the budget may be larger
    if overspent and response.again and not response.closes:
        response = failures.Response(charged=True)
    error = failures.brief(input.error)
    error = f"{error}; {overspent}" if overspent and not response.again else error
    failed = StepFailed(
        agent=agent.id,
        step=agent.step,
        phase="evaluate",
        kind=input.kind,
        error=error,
        exit_code=input.exit_code,
        charged=response.charged,
        again=response.again,
        retry_at=round(input.time + response.wait, 3) if response.wait else ZERO,
        **cost_of(input.spent, input.denied),
    )
    if response.closes:
        return [failed, *closing.close(run, agent, input)]
    freed = closing.freed(run, agent)
    if response.again:
        return [failed, *freed]
    why = f"the evaluator failed ({input.kind}): {error}"
    return [failed, *freed, *transitions.fail(run, placed, agent, "evaluator", why)]


def briefly(asked: Sequence[Transition]) -> str:
    """Transitions as their tags and states: `goto REVIEW.md`."""
    return ", ".join(" ".join((type(one).__name__.lower(), *targets(one))) for one in asked)


def _settle(
    run: Run,
    placed: PlacedWorkflow,
    agent: Agent,
    found: Evaluator,
    verdict: str | None,
    problem: str,
    time: float,
    input: Judged | None = None,
) -> list[Event]:
    """The verdict counts, or the default when there is a `problem` with it."""
    pending, choice = _pending(agent), found.choice(verdict)
    said = input.said if input else ""
    if not choice:
        why = f"{problem}, and the evaluator has no default"
        return [
            _ended(agent, input, said=said, reason=problem),
            *transitions.fail(run, placed, agent, "evaluator", why),
        ]
    chosen = evaluator.transition(choice)
    asked = pending.asked if chosen is None or _is_same(placed, pending, chosen) else (chosen,)
    rules = rules_of(run, placed, agent)
    then = policy.permit(rules, asked) or _next(run, placed, agent, rules, asked, time, input)
    if isinstance(then, Refusal):
        why = f"what the evaluator chose is not possible: {then.reason}"
        return [
            _ended(agent, input, verdict=verdict or "", said=said, reason=failures.brief(then.reason)),
            *transitions.fail(run, placed, agent, "evaluator", why),
        ]
    ended = _ended(
        agent,
        input,
        verdict=verdict or "",
        said="" if verdict else said,
        reason=problem,
        actual=briefly(transitions.resolved(placed, asked)),
        kept=asked is pending.asked,
        decided=True,
    )
    return [ended, *then]


def _next(
    run: Run,
    placed: PlacedWorkflow,
    agent: Agent,
    rules: Policy,
    asked: Sequence[Transition],
    time: float,
    input: Judged | None,
) -> list[Event] | Refusal:
    """Where the agent goes, or the gate that what the evaluator chose has still to pass."""
    pending = _pending(agent)
    if asked is pending.asked:
        return _released(run, placed, agent, asked, time)
    files = input.files if input else ()
    directories = input.directories if input else {}
    output = pending.output if policy.keeps_output(rules) else None
    then = transitions.follow(run, placed, agent, asked, time=time, directories=directories, files=files, output=output)
    if isinstance(then, Refusal) or pending.passed or not policy.is_gated(rules, asked):
        return then
    places = {name: place for name, place in directories.items() if isinstance(place, str)}
    return [TransitionHeld(agent=agent.id, asked=transitions.resolved(placed, asked), places=places)]


def _released(
    run: Run, placed: PlacedWorkflow, agent: Agent, asked: Sequence[Transition], time: float
) -> list[Event] | Refusal:
    """What the agent had asked for; what had permitted it may have changed since."""
    pending = _pending(agent)
    output = pending.output if policy.keeps_output(rules_of(run, placed, agent)) else None
    return transitions.follow(
        run, placed, agent, asked, time=time, directories=pending.places, files=pending.files, output=output
    )


def _can_ask_again(found: Evaluator, rules: Policy, agent: Agent, input: Judged) -> bool:
    """Whether a judge that was not clear is asked once more: a pattern would only say the same."""
    if not found.prompt or input.problem or _pending(agent).again:
        return False
    return not budget.spent(rules, agent, input.spent.cost)


def _unclear(found: Evaluator, said: str) -> str:
    who, shown = "the judge" if found.prompt else "the pattern", said[:_LONGEST_SAID]
    answer = f'said "{shown}"' if shown else "said nothing"
    return f"{who} {answer}, which is none of: {', '.join(found.verdicts)}"


def _ended(agent: Agent, input: Judged | None = None, **given: Any) -> EvaluatorEnded:
    given["said"] = str(given.get("said", ""))[:_LONGEST_SAID]
    return EvaluatorEnded(
        agent=agent.id,
        step=agent.step,
        requested=briefly(_pending(agent).asked),
        **given,
        **(cost_of(input.spent, input.denied) if input else {}),
    )


def _is_same(placed: PlacedWorkflow, pending: Pending, chosen: Transition) -> bool:
    """Whether an evaluator chose what the agent had asked for, by whatever name."""

    def full(name: str) -> str:
        found = resolve(placed.workflow, name)
        return found if isinstance(found, str) else name

    return pending.asked == (renamed(chosen, full),)


def _retries(placed: PlacedWorkflow, state: State) -> int:
    judge = judges.of_state(placed.workflow, state)
    said = placed.workflow.states[judge].policy.retries if isinstance(judge, str) and judge else None
    return failures.PROMPT_RETRIES if said is None else said


def _pending(agent: Agent) -> Pending:
    assert agent.visit.pending is not None, f"{agent.id} has nothing to evaluate"
    return agent.visit.pending


def lacks_model(start: RunStarted, backend: str, found: Evaluator, judge: State) -> bool:
    """Whether nobody has said which model of `backend` judges."""
    return backend not in (*SCRIPTED, SCRIPTS) and not model_of(start, backend, found, judge)
