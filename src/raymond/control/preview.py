"""A dry run: what a run would start with, as values."""

import os
from collections.abc import Collection, Iterator, Mapping

from msgspec import Struct

from raymond.backends import Backend, Direct, Turn, registry
from raymond.control import preflight, programs, trust
from raymond.control.config import Config, Setting
from raymond.control.settings import OPTIONS
from raymond.control.start import Choices, prepare
from raymond.errors import Diagnostic
from raymond.language import lint
from raymond.language.workflow import State
from raymond.machine import gates, limits, placed_workflow
from raymond.machine.agent import SCRIPTS
from raymond.machine.decide import begin, decide
from raymond.machine.events import Decision, Program, RunStarted
from raymond.machine.evolve import apply, fold
from raymond.machine.inputs import Begin, SealTaken
from raymond.machine.placed_workflow import PlacedWorkflow
from raymond.machine.run import Run, pool_of
from raymond.steps import script_step, spool
from raymond.store import home as homes
from raymond.store import project as projects
from raymond.store import workflow_snapshot
from raymond.store.loader import Loaded
from raymond.store.project import Project
from raymond.system.stragglers import MARK


class FirstStep(Struct, frozen=True, kw_only=True):
    """What the first step would be started with."""

    command: list[str] = []
    """The program and its arguments; empty when `backend` answers in this process."""
    backend: str = ""
    stdin: str = ""
    """The file that would be its standard input."""
    gets: list[str] = []
    """The variables that would be set for it."""
    without: list[str] = []
    """Variables of this environment that it would not see, apart from RAYMOND_*."""
    prompt: str | None = None
    """What would be sent; None for a script."""


class PlannedGate(Struct, frozen=True, kw_only=True):
    """The gate of a state, with what counts where its policy says nothing."""

    state: State
    timeouts: list[float]
    """Seconds for each of its commands."""
    tries: int
    """How often the agent is told that it is red; nobody can tell a script."""
    reruns: int


class Preview(Struct, frozen=True, kw_only=True):
    """The first step, exactly; the rights; the limits and where they come from."""

    start: RunStarted
    scope_dir: str
    files: int
    digest: str
    step: FirstStep
    limits: dict[str, Setting]
    """By the names of the settings, each with where it comes from."""
    silence: float
    programs: list[Program] = []
    """What would answer prompts, wherever the entry can lead."""
    heedless: list[str] = []
    """Those of them that take no heed of the rights of a run."""
    guessed: bool = False
    """One of them does not say what a turn costs."""
    uses: list[trust.Use] = []
    """The settings of the project for agents' programs, if there are any."""
    gates: list[PlannedGate] = []
    warnings: list[Diagnostic] = []
    """What is doubtful about the workflow."""


def dry_run(loaded: Loaded, options: Choices, settings: Config) -> Preview:
    """What a run of `loaded` would start with here; nothing is written."""
    project, prepared = projects.at(os.getcwd()), prepare(loaded, options, look=False)
    start = prepared.start
    taken = project.run(start.workflow_id).in_the_way()
    if taken:
        raise taken
    run = fold([Decision(seq=1, time=0.0, events=begin(start))])
    placed = workflow_snapshot.placed_workflow(project, run, loaded)
    trusts = trust.decide(project, start, loaded.workflow, trusts_now=options.trust_project).trusts
    backends = registry.make(project, run, placed, settings["backends"], trusts)
    answers = programs.answering(start, loaded.workflow, settings["backends"])
    able = {one.name: backends[one.name].can for one in answers if one.name not in registry.SCRIPTED}
    return Preview(
        start=start,
        scope_dir=loaded.scope_dir,
        files=len(loaded.files),
        digest=loaded.digest,
        step=_step(project, run, placed, start, backends),
        limits={name: _limit(settings, name, start) for name in OPTIONS if name in limits.LIMIT_NAMES},
        silence=start.timeout or settings["timeout"],
        programs=answers,
        heedless=[name for name, can in able.items() if not (can.permission_modes or can.tool_rules)],
        guessed=any(can.unpriced for can in able.values()),
        uses=trust.uses_of_run(project, start, loaded.workflow, trusts_now=options.trust_project),
        gates=[_gate(state) for state in loaded.workflow.states.values() if state.policy.has_gate],
        warnings=[*prepared.warnings, *_missing(start, answers, settings["backends"])],
    )


def _missing(start: RunStarted, answers: list[Program], tables: registry.Tables) -> Iterator[Diagnostic]:
    """The programs that the run would be refused without."""
    for one in answers:
        if why := programs.examine(start, one.name, tables)[1]:
            yield Diagnostic(id="backend-missing", severity="warning", message=why, file="")


def workflow_warnings(loaded: Loaded, given: Collection[str]) -> list[Diagnostic]:
    """The warnings about a workflow whose start is refused, all that need no backend; `given` are its variables."""
    found = [one for one in lint.check(loaded.workflow, given) if one.severity == "warning"]
    found += [*preflight.environment_warnings(os.environ), *preflight.script_warnings(loaded.workflow)]
    return preflight.located(found, loaded)


def _gate(state: State) -> PlannedGate:
    policy = state.policy
    tries = gates.TRIES if policy.gate_tries is None else policy.gate_tries
    return PlannedGate(
        state=state,
        timeouts=[check.timeout or policy.gate_timeout or gates.TIMEOUT for check in policy.gate],
        tries=0 if state.kind == "script" else tries,
        reruns=gates.RERUNS if policy.gate_reruns is None else policy.gate_reruns,
    )


def _limit(settings: Config, name: str, start: RunStarted) -> Setting:
    setting, value = settings.settings[name], getattr(start, name)
    if name == "budget":
        return Setting(value, start.budget_from)
    return Setting(value, setting.origin if setting.value == value else "the workflow")


def _step(
    project: Project, run: Run, placed: PlacedWorkflow, start: RunStarted, backends: Mapping[str, Backend | Direct]
) -> FirstStep:
    agent = run.agents["main"]
    if pool_of(run, start.entry) == SCRIPTS:
        command = [*script_step.interpreter(placed, start.entry), f"{placed.workflow_dir}/{start.entry}"]
        names = [script_step.variable(name).decode() for name in placed_workflow.values_of_visit(run, placed, agent)]
        more = ("RAYMOND_INPUT_FILE", "RAYMOND_OUT", "RAYMOND_STEP_KEY", homes.VARIABLE, MARK)
        return FirstStep(command=command, gets=sorted([*names, *more]))
    apply(run, Decision(seq=2, time=0.0, events=decide(run, placed, Begin(time=0.0, agent="main"))))
    if agent.visit.phase == "seal":
        for input in (SealTaken(time=0.0, agent="main", seal="-"), Begin(time=0.0, agent="main")):
            apply(run, Decision(seq=run.seq + 1, time=0.0, events=decide(run, placed, input)))
    turn = spool.turn_of(run, placed, agent, project.run(start.workflow_id).spool)
    return _turn(backends[agent.pool], turn)


def _turn(backend: Backend | Direct, turn: Turn) -> FirstStep:
    if isinstance(backend, Direct):
        return FirstStep(backend=backend.name, prompt=turn.prompt)
    command = backend.command(turn)
    return FirstStep(
        command=list(command.argv),
        backend=backend.name,
        stdin=f"{turn.spool}/prompt",
        gets=sorted([*command.environment, homes.VARIABLE, MARK]),
        without=list(command.without),
        prompt=turn.prompt,
    )
