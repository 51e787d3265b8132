"""The states that agents of a run need or can still enter, and the change to files that must have them."""

from collections.abc import Iterable, Iterator, Mapping

from raymond import pasted
from raymond.errors import UsageError
from raymond.language import reach
from raymond.language.refusal import Refusal
from raymond.language.tags import targets
from raymond.language.workflow import Workflow, resolve
from raymond.machine.agent import Agent
from raymond.machine.events import WorkflowChanged
from raymond.machine.run import Run

# Continue with today's files instead of the snapshot: which states are needed, and their new names


def change_workflow(run: Run, workflow: Workflow, digest: str, renamed: Mapping[str, str]) -> WorkflowChanged:
    """The event that switches the run to `workflow`; refused when a state that an agent needs is gone."""
    names: dict[str, str] = {}
    for old, new in renamed.items():
        found = resolve(workflow, new)
        if isinstance(found, Refusal):
            raise UsageError(f"--map {old}={new}: {found.reason}", hint=found.hint)
        names[_full_name(run, old)] = found
    gone = {state: users for state, users in needed(run).items() if names.get(state, state) not in workflow.states}
    if gone:
        listed = "; ".join(f"{state}, which {users[0]} needs" for state, users in gone.items())
        hint = f"--map {pasted.word(next(iter(gone)), 'OLD')}=NEW for each, or `resume` without --latest"
        raise UsageError(f"today's files have no {listed}", hint=hint)
    backends = {
        state.name: state.policy.backend
        for state in workflow.states.values()
        if state.policy.backend and state.policy.backend != run.start.backend
    }
    return WorkflowChanged(source=digest, renamed=names, backends=backends)


def needed(run: Run) -> dict[str, list[str]]:
    """Every state that an agent is in, returns to, or goes to after its sleep or gate, with the agents that need it."""
    found: dict[str, list[str]] = {}
    for agent in run.agents.values():
        for state in _states_needed_by(agent):
            if state:
                found.setdefault(state, []).append(agent.id)
    return found


def _states_needed_by(agent: Agent) -> Iterable[str]:
    rest = agent.visit.rest
    yield from (agent.state, *((rest.state, rest.timeout_state, rest.failed_state) if rest else ()))
    yield from (frame.state for frame in agent.stack or ())
    held = agent.visit.pending.asked if agent.visit.pending else ()
    yield from (name for one in held for name in targets(one))


def _full_name(run: Run, name: str) -> str:
    """The needed state that `name` refers to."""
    for state in needed(run):
        if name in (state, state.rpartition(".")[0]):
            return state
    raise UsageError(
        f"--map {name}: no agent needs a state of that name", hint=f"needed: {', '.join(map(pasted.name, needed(run)))}"
    )


# Where agents can still go


def reachable_states(run: Run, workflow: Workflow) -> frozenset[str]:
    """The states that its agents can still enter, unless a person sends one elsewhere."""
    return reach.ahead(workflow, {state for agent in run.agents.values() for state in _states_next(agent, workflow)})


def _states_next(agent: Agent, workflow: Workflow) -> Iterator[str]:
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
