"""The values that `{{name}}` and the environment of a script have in a visit."""

import msgspec
from msgspec import Struct

from raymond.language import policy
from raymond.machine.agent import Agent, Visit
from raymond.machine.outcome import Whole
from raymond.machine.placed_workflow import PlacedWorkflow
from raymond.machine.run import Run


def values(run: Run, placed: PlacedWorkflow, agent: Agent) -> dict[str, str]:
    """Every name bound in this visit; built-in names win over variables, and variables over metadata."""
    start = run.start
    visit = agent.visit
    # Made once: what a wait collected may be hundreds of megabytes.
    collected = results(visit, placed.whole) if visit.results is not None or visit.results_are_input else ""
    given = collected if visit.results_are_input else visit.input
    bound = {
        "input": given,
        "result": given,
        "run_input": start.input,
        "workflow_id": start.workflow_id,
        "agent_id": agent.id,
        "state": agent.state,
        "visit": str((agent.visits or {}).get(agent.state, 1)),
        "attempt": str(visit.attempt),
        "task_folder": placed.task_folder(agent.id),
        "workflow_dir": placed.workflow_dir,
    }
    if visit.results is not None:
        bound["results"] = collected
    if visit.cause:
        bound["error"] = visit.cause
    if visit.gate:
        bound["gate"] = visit.gate
    if visit.gate_result:
        bound["gate_result"] = msgspec.json.encode(visit.gate_result).decode()
    state = placed.workflow.states.get(agent.state)
    if state and state.policy.allowed_transitions:
        bound["transitions"] = policy.instructions(state.policy)
    for given_by in (agent.variables, start.metadata):
        for name, value in (given_by or {}).items():
            bound.setdefault(name, value)
    return bound


class _Collected(Struct):
    """An outcome as prompts and scripts see it."""

    agent: str
    label: str
    state: str
    status: str
    result: str
    error: str


def results(visit: Visit, whole: Whole) -> str:
    """What a wait collected, as JSON in the order of forking."""
    texts = bytearray(b"[")
    for one in visit.results or ():
        seen = _Collected(one.agent, one.label, one.state, one.status, whole(one), one.error)
        texts += (b"," if len(texts) > 1 else b"") + msgspec.json.encode(seen)
    texts += b"]"
    return texts.decode()
