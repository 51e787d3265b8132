"""Where the agents of a run can still go."""

from collections.abc import Iterator

from raymond.language import reach
from raymond.language.workflow import Workflow
from raymond.machine.agent import Agent
from raymond.machine.run import Run


def states(run: Run, workflow: Workflow) -> frozenset[str]:
    """The states that its agents can still enter, unless a person sends one elsewhere."""
    return reach.ahead(workflow, {state for agent in run.agents.values() for state in _next(agent, workflow)})


def _next(agent: Agent, workflow: Workflow) -> Iterator[str]:
    """The states that an agent enters next, and those it returns to; one that was given up enters none."""
    visit = agent.visit
    if visit.given_up:
        return
    if visit.rest:  # what asked or forked has ended, and is not repeated
        yield from (visit.rest.state, visit.rest.timeout_state, visit.rest.failed_state)
        if visit.state in workflow.states:
            yield workflow.states[visit.state].policy.on_error
    else:
        yield visit.state
    yield from (frame.state for frame in agent.stack or ())
