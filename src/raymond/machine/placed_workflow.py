"""A workflow with its folders on this machine, and what holds for an agent in one of its states.

That is the policy of the state with the deferred values of the agent, and the values of `{{name}}` in a visit.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from raymond.language import frontmatter, late, policy
from raymond.language.policy import Policy
from raymond.language.policy_keys import KEYS
from raymond.language.workflow import State, Workflow
from raymond.machine.agent import Agent, Outcome, Visit, Whole, file_name
from raymond.machine.run import Run


def _held_in_memory(outcome: Outcome) -> str:
    return outcome.result


class PlacedWorkflow(Struct, frozen=True):
    """A workflow with its folders on this machine."""

    workflow: Workflow
    workflow_dir: str
    tasks_dir: str
    uses_task_folder: bool = True
    """Whether the workflow mentions the task folder, which then has to exist."""
    models: tuple[str, ...] = ()
    """The only models that the site rules of this machine allow; empty for any."""
    whole: Whole = _held_in_memory

    def task_folder(self, agent: str) -> str:
        """Where the agent may keep its own files."""
        return f"{self.tasks_dir}/{file_name(agent)}"


# The policy that an agent is under


def rules_of(run: Run, placed: PlacedWorkflow, agent: Agent) -> Policy:
    """What the agent may do and needs in its state."""
    rules = placed.workflow.states[agent.visit.state].policy
    return with_values(rules, _values_of_agent(run, agent)) if rules.late else rules


def rules_of_state(run: Run, state: State, agent: Agent) -> Policy:
    """The same, where the state is at hand."""
    return with_values(state.policy, _values_of_agent(run, agent)) if state.policy.late else state.policy


def with_values(rules: Policy, values: Mapping[str, str]) -> Policy:
    """`rules` with the values of their variables; a value that cannot be read is not set, see `late_problem`."""
    return replace(rules, **_read_late(rules, values)[0])


def late_problem(run: Run, placed: PlacedWorkflow, agent: Agent) -> str:
    """Why the late values of the agent's state cannot be used; empty when they can."""
    rules = placed.workflow.states[agent.state].policy
    if not rules.late:
        return ""
    values = _values_of_agent(run, agent)
    if name := late.missing(rules.late, values):
        return f'the gate of {agent.state} is "{{{{{name}}}}}", and neither its fork nor --var has given `{name}`'
    found, wrong = _read_late(rules, values)
    if wrong:
        return f"{wrong} (a late value of {agent.state})"
    from raymond.language import gate_rules  # few states have late values

    for check in found.get("gate", ()):
        for one in gate_rules.judge(check.run):
            if one.kind == "unsafe":
                return f"the check `{check.run}` {one.what}"
    return ""


def _read_late(rules: Policy, values: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    """The fields that late values set, and what is wrong with the first of the others."""
    document = frontmatter.given(late.given(rules.late, values), file="")
    read = {key: KEYS[key](document, (key,), value) for key, value in document.values.items()}
    wrong = document.diagnostics[0].message if document.diagnostics else ""
    return {key: value for key, value in read.items() if value is not None}, wrong


def _values_of_agent(run: Run, agent: Agent) -> dict[str, str]:
    return {**run.start.metadata, **(agent.variables or {})}


# The values in a visit


def values_of_visit(run: Run, placed: PlacedWorkflow, agent: Agent) -> dict[str, str]:
    """Every name bound in this visit; built-in names win over variables, and variables over metadata."""
    start = run.start
    visit = agent.visit
    # Made once: what a wait collected may be hundreds of megabytes.
    collected = collected_results(visit, placed.whole) if visit.results is not None or visit.results_are_input else ""
    given = collected if visit.results_are_input else visit.input
    bound = {
        "input": given,
        "result": given,
        "run_input": start.input,
        "workflow_id": start.workflow_id,
        "agent_id": agent.id,
        "state": agent.state,
        "visit": str(agent.visits.get(agent.state, 1)),
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


def collected_results(visit: Visit, whole: Whole) -> str:
    """What a wait collected, as JSON in the order of forking."""
    texts = bytearray(b"[")
    for one in visit.results or ():
        seen = _Collected(one.agent, one.label, one.state, one.status, whole(one), one.error)
        texts += (b"," if len(texts) > 1 else b"") + msgspec.json.encode(seen)
    texts += b"]"
    return texts.decode()
