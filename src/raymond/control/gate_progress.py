"""What a gate that runs is at, for those who look at a run."""

from msgspec import Struct

from raymond.errors import Error
from raymond.language.policy import Policy
from raymond.machine import gates, rules
from raymond.machine.agent import Agent
from raymond.machine.run import Run
from raymond.store.project import Project
from raymond.store.records import Records
from raymond.views.status import is_checking, why_red


class Progress(Struct, frozen=True):
    """The gate of an agent's visit."""

    command: str = ""
    """What runs now; empty when none does, or nobody can tell."""
    tries: int = 0
    """How often the agent is told that it is red, at most."""


def of(project: Project, run: Run) -> dict[str, Progress]:
    """By agent, for those whose gate runs or was red; the workflow is read only if there is one."""
    agents = [agent for agent in run.agents.values() if is_checking(agent) or why_red(agent)]
    if not agents:
        return {}
    from raymond.store import loader, sources  # hardly any look at a run needs the workflow

    start = run.start
    try:
        files = sources.read(project.run(start.workflow_id), start.source)
        states = loader.from_files(files, name=start.name, entry=start.entry, overrides=start.overrides).states
    except Error:
        return {}
    records = Records(project.run(start.workflow_id).transcripts)
    known = [agent for agent in agents if agent.state in states]
    return {agent.id: _progress(rules.of_state(run, states[agent.state], agent), agent, records) for agent in known}


def _progress(policy: Policy, agent: Agent, records: Records) -> Progress:
    tries = gates.TRIES if policy.gate_tries is None else policy.gate_tries
    if not is_checking(agent):
        return Progress(tries=tries)
    printed = "\n" + "".join(str(line.get("out", "")) for line in records.so_far(agent.id, agent.step))
    if not policy.gate:
        return Progress(tries=tries)
    begun = {check.run: printed.rfind(f"\n$ {check.run}\n") for check in policy.gate}
    last = max(begun, key=lambda command: begun[command])
    return Progress(last if begun[last] >= 0 or len(begun) == 1 else "", tries)
