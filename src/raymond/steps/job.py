"""A job: everything a step needs to run, as plain data that could be sent to another machine."""

from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from raymond.backends import Turn
from raymond.language.evaluator import Evaluator
from raymond.language.policy import Policy
from raymond.language.ways import WAYS, Way, narrowed
from raymond.machine import failures, gates, placed_workflow
from raymond.machine.agent import SCRIPTS, Agent, backend_of
from raymond.machine.placed_workflow import PlacedWorkflow, rules_of
from raymond.machine.run import Run


class Job(Struct, frozen=True, kw_only=True, tag=True):
    """What every kind of step needs to know."""

    agent: str
    state: str
    step: int
    """Its number in the run."""
    attempt: int
    cwd: str
    task_folder: str
    """The folder the agent keeps files in; empty when no text of the workflow mentions it."""
    home: str
    """The directory of the run: an agent may change to any directory inside it."""
    roots: tuple[str, ...]
    """Directories outside `home` that agents may change to."""
    policy: Policy
    silence: float
    """Seconds without output after which the step is stopped."""
    way: Way = "here"
    """Where it works."""
    lend: tuple[str, ...] = ()
    net: str = "on"
    backend: str = ""
    """Who answers; empty for a script."""


class ScriptJob(Job, frozen=True, kw_only=True, tag=True):
    """Run a script."""

    script: str
    origin: str = ""
    """The file that the script of a loop was taken from."""
    python: str
    """The Python that runs it, when the workflow names one."""
    values: dict[str, str]
    """What the script finds in its environment, by the names that prompts use."""
    key: str
    """The same for every attempt at the same visit."""


class TurnJob(Job, frozen=True, kw_only=True, tag=True):
    """Take one turn of a backend."""

    turn: int
    """Its number in the step."""
    invocation: Turn
    """What the backend is asked; its spool is relative to the spool of whoever runs it."""
    tool_silence: float
    """Seconds a tool may run without output."""
    retryable: tuple[str, ...]
    """Patterns of errors that count as an overload."""
    evaluator: Evaluator | None = None
    """Of the turn of a judge: the evaluator that asks it."""


class GateJob(Job, frozen=True, kw_only=True, tag=True):
    """Take down what decides the gate of a state, or run it."""

    does: Literal["seal", "gate"]
    sealed: int
    """The step that took it down: for this gate, or for a visit before that ended without a green one; 0 for none."""
    digest: str
    """Of what was taken down for this gate; empty when it is not known."""
    accepted: str
    """The digest of the changes that a person has accepted."""
    allows_edits: bool
    red_first: bool
    may_change: tuple[str, ...]
    """The only files that may be changed, unless the state says it; empty for all."""
    setup: str
    """What installs dependencies in the place of a check."""

    timeout: float
    reruns: int
    key: str
    """The mark of the run."""
    turns: tuple[int, ...]
    """The steps in which the agent worked."""


class PatternJob(Job, frozen=True, kw_only=True, tag=True):
    """Search the pattern of an evaluator."""

    evaluator: Evaluator
    text: str


def job_of(run: Run, placed: PlacedWorkflow, agent: Agent) -> ScriptJob | TurnJob | GateJob | PatternJob:
    """The job of the step that `agent` is in."""
    if agent.visit.phase == "evaluate":
        return _evaluator_job(run, placed, agent)
    if agent.visit.phase:
        return _gate_job(run, placed, agent)
    return (_script_job if agent.pool == SCRIPTS else _turn_job)(run, placed, agent)


def _script_job(run: Run, placed: PlacedWorkflow, agent: Agent) -> ScriptJob:
    start, workflow = run.start, placed.workflow
    policy = rules_of(run, placed, agent)
    return ScriptJob(
        agent=agent.id,
        state=agent.state,
        step=agent.step,
        attempt=agent.visit.attempt,
        cwd=agent.cwd or start.cwd,
        task_folder=placed.task_folder(agent.id) if placed.uses_task_folder else "",
        home=start.cwd,
        roots=tuple(start.roots),
        policy=policy,
        silence=_silence(run, policy),
        **_place(run, policy),
        script=f"{placed.workflow_dir}/{agent.state}",
        origin=f"{start.scope_dir}/{agent.state}" if start.loop else "",
        python=workflow.settings.python,
        values=placed_workflow.values_of_visit(run, placed, agent),
        key=f"{start.key}-{agent.id}-{agent.entered}",
    )


def _gate_job(run: Run, placed: PlacedWorkflow, agent: Agent) -> GateJob:
    start, policy, visit = run.start, rules_of(run, placed, agent), agent.visit
    cwd = agent.cwd or start.cwd
    return GateJob(
        does="seal" if visit.phase == "seal" else "gate",
        sealed=visit.seal.step if visit.seal else _open_seal(run, cwd) if visit.phase == "seal" else 0,
        digest=visit.seal.digest if visit.seal else run.vouched,
        accepted=visit.accepted,
        allows_edits=start.allow_test_edits,
        red_first=start.red_first,
        may_change=tuple(start.may_change),
        setup=start.setup,
        agent=agent.id,
        state=agent.state,
        step=agent.step,
        attempt=max(1, visit.checks),
        cwd=cwd,
        task_folder="",
        home=start.cwd,
        roots=tuple(start.roots),
        policy=policy,
        silence=_silence(run, policy),
        **_place(run, policy),
        timeout=policy.gate_timeout or gates.TIMEOUT,
        reruns=gates.RERUNS if policy.gate_reruns is None else policy.gate_reruns,
        key=start.key,
        turns=visit.turns,
    )


def _evaluator_job(run: Run, placed: PlacedWorkflow, agent: Agent) -> TurnJob | PatternJob:
    from raymond.steps import evaluation

    judge, start = evaluation.judge_of(placed, agent), run.start
    policy = judge.policy if judge else evaluation.NOTHING
    evaluator, pending = evaluation.evaluator_of(placed, agent), evaluation.pending_of(agent)
    every: dict[str, Any] = {
        "agent": agent.id,
        "state": agent.state,
        "step": agent.step,
        "attempt": pending.tries + 1,
        "cwd": agent.cwd or start.cwd,
        "task_folder": "",
        "home": start.cwd,
        "roots": tuple(start.roots),
        "policy": policy,
        "silence": _silence(run, policy),
        "evaluator": evaluator,
    }
    if agent.pool == SCRIPTS:
        return PatternJob(**every, text=pending.output)
    return TurnJob(
        **every,
        **_place_of_judge(run, placed, placed.workflow.states[agent.state].policy),
        backend=backend_of(agent.pool),
        turn=1,
        invocation=evaluation.turn_of(run, placed, agent, "", None),
        tool_silence=start.tool_timeout or failures.TOOL_TIME,
        retryable=tuple(start.retryable),
    )


def _open_seal(run: Run, cwd: str) -> int:
    """The oldest seal of a directory that no green gate has ended; 0 for none."""
    held = [one.visit.seal.step for one in run.agents.values() if one.visit.seal and one.visit.seal.cwd == cwd]
    return min([*held, *([run.seals[cwd]] if cwd in run.seals else [])], default=0)


def _turn_job(run: Run, placed: PlacedWorkflow, agent: Agent) -> TurnJob:
    from raymond.steps.spool import turn_of  # a run of scripts starts without what turns need

    start = run.start
    policy = rules_of(run, placed, agent)
    return TurnJob(
        agent=agent.id,
        state=agent.state,
        step=agent.step,
        attempt=agent.visit.attempt,
        cwd=agent.cwd or start.cwd,
        task_folder=placed.task_folder(agent.id) if placed.uses_task_folder else "",
        home=start.cwd,
        roots=tuple(start.roots),
        policy=policy,
        silence=_silence(run, policy),
        **_place(run, policy),
        backend=backend_of(agent.pool),
        turn=agent.visit.turn,
        invocation=turn_of(run, placed, agent, ""),
        tool_silence=policy.tool_timeout or start.tool_timeout or failures.TOOL_TIME,
        retryable=tuple(start.retryable),
    )


def _place(run: Run, policy: Policy) -> dict[str, Any]:
    """Where the step works, and with what."""
    start = run.start
    if start.workspace == "here" and not policy.workspace:
        return {}
    lend = start.lend if policy.lend is None else [one for one in policy.lend if one in start.lend]
    net = "off" if "off" in (start.net, policy.net) else policy.net or start.net
    return {"way": narrowed(start.workspace, policy.workspace), "lend": tuple(lend), "net": net}


def _place_of_judge(run: Run, placed: PlacedWorkflow, judged: Policy) -> dict[str, Any]:
    """Where a judge works, who needs nothing of the project: as far apart as any agent of the run."""
    ways = [state.policy.workspace for state in placed.workflow.states.values() if state.policy.workspace]
    return _place(run, replace(judged, workspace=max(ways, key=WAYS.index, default="")))


def _silence(run: Run, policy: Policy) -> float:
    return (run.start.timeout or failures.SILENCE) if policy.timeout is None else policy.timeout
