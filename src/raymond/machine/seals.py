"""When what decides a gate is taken down: before the work of a visit begins."""

from raymond.language.policy import Policy
from raymond.machine import transitions
from raymond.machine.agent import Agent
from raymond.machine.events import Event, SealEnded, StepStarted
from raymond.machine.failures import brief
from raymond.machine.inputs import SealTaken
from raymond.machine.placed_workflow import PlacedWorkflow
from raymond.machine.run import Run


def is_due(rules: Policy, agent: Agent) -> bool:
    """Whether the visit has a gate, and nobody has taken down what decides it."""
    return bool(rules.gate) and agent.visit.seal is None and not agent.visit.turn


def begin(run: Run, agent: Agent) -> StepStarted:
    """The start of it."""
    return StepStarted(agent=agent.id, step=run.steps + 1, phase="seal")


def follow(run: Run, placed: PlacedWorkflow, input: SealTaken) -> list[Event]:
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
