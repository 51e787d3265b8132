"""The policy that an agent is under: that of its state, with the late values of this agent."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from raymond.language import frontmatter, gate_rules, late
from raymond.language.policy import Policy
from raymond.language.policy_keys import KEYS
from raymond.language.workflow import State
from raymond.machine.agent import Agent
from raymond.machine.placed_workflow import PlacedWorkflow
from raymond.machine.run import Run


def rules_of(run: Run, placed: PlacedWorkflow, agent: Agent) -> Policy:
    """What the agent may do and needs in its state."""
    return of_state(run, placed.workflow.states[agent.state], agent)


def of_state(run: Run, state: State, agent: Agent) -> Policy:
    """The same, where the state is at hand."""
    return bound(state.policy, _values(run, agent)) if state.policy.late else state.policy


def bound(rules: Policy, values: Mapping[str, str]) -> Policy:
    """`rules` with the values of their variables; a value that cannot be read is not set, see `problem`."""
    return replace(rules, **_read(rules, values)[0])


def problem(run: Run, placed: PlacedWorkflow, agent: Agent) -> str:
    """Why the late values of the agent's state cannot be used; empty when they can."""
    rules = placed.workflow.states[agent.state].policy
    if not rules.late:
        return ""
    values = _values(run, agent)
    if name := late.missing(rules.late, values):
        return f'the gate of {agent.state} is "{{{{{name}}}}}", and neither its fork nor --var has given `{name}`'
    found, wrong = _read(rules, values)
    if wrong:
        return f"{wrong} (a late value of {agent.state})"
    for check in found.get("gate", ()):
        for one in gate_rules.judge(check.run):
            if one.kind == "unsafe":
                return f"the check `{check.run}` {one.what}"
    return ""


def _read(rules: Policy, values: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    """The fields that late values set, and what is wrong with the first of the others."""
    document = frontmatter.given(late.given(rules.late, values), file="")
    read = {key: KEYS[key](document, (key,), value) for key, value in document.values.items()}
    wrong = document.diagnostics[0].message if document.diagnostics else ""
    return {key: value for key, value in read.items() if value is not None}, wrong


def _values(run: Run, agent: Agent) -> dict[str, str]:
    return {**run.start.metadata, **(agent.variables or {})}
