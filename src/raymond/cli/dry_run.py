"""`--dry-run`: what a run would start with."""

import shlex

from raymond import durations
from raymond.backends import Direct, Turn, registry
from raymond.control.config import Config
from raymond.machine import variables
from raymond.machine.agent import SCRIPTS
from raymond.machine.decide import begin, decide
from raymond.machine.events import Decision, RunStarted
from raymond.machine.evolve import apply, fold
from raymond.machine.inputs import Begin
from raymond.machine.run import Run, pool_of
from raymond.machine.workspace import Workspace
from raymond.steps import script_step, spool
from raymond.store.loader import Loaded
from raymond.store.project import Project
from raymond.system.marks import MARK


def show(project: Project, loaded: Loaded, start: RunStarted, settings: Config) -> str:
    """The first step, exactly; the rights; the limits and where they come from."""
    run = fold([Decision(seq=1, time=0.0, events=begin(start))])
    workspace = Workspace(
        loaded.workflow, project.path("work", start.source[:16]), project.path("tasks", start.workflow_id)
    )
    lines = [
        f"run:      {start.name} at {start.entry}, in {start.cwd}",
        f"workflow: {loaded.scope_dir} ({len(loaded.files)} files, {loaded.digest[:16]})",
        *_step(project, run, workspace, start, settings["backends"]),
        f"rights:   {_rights(start)}",
        *_limits(start, settings),
        "nothing was started",
    ]
    return "\n".join(lines) + "\n"


def _step(project: Project, run: Run, workspace: Workspace, start: RunStarted, tables: registry.Tables) -> list[str]:
    agent = run.agents["main"]
    if pool_of(run, start.entry) == SCRIPTS:
        command = [*script_step.interpreter(workspace, start.entry), f"{workspace.workflow_dir}/{start.entry}"]
        names = [script_step.variable(name).decode() for name in variables.values(run, workspace, agent)]
        names += ["RAYMOND_INPUT_FILE", "RAYMOND_STEP_KEY", MARK]
        return [
            f"command:  {shlex.join(command)}",
            f"gets:     {', '.join(sorted(names))}",
            "          and what is set here, without other names that begin with RAYMOND_",
        ]
    apply(run, Decision(seq=2, time=0.0, events=decide(run, workspace, Begin(time=0.0, agent="main"))))
    turn = spool.turn_of(run, workspace, agent, project.path("spool", start.workflow_id))
    return [
        *_program(project, run, workspace, turn, tables),
        "prompt:",
        *(f"  {line}" for line in turn.prompt.splitlines()),
    ]


def _program(project: Project, run: Run, workspace: Workspace, turn: Turn, tables: registry.Tables) -> list[str]:
    backend = registry.make(project, run, workspace, tables)[run.agents["main"].pool]
    if isinstance(backend, Direct):
        return [f"command:  {backend.name}, in this process"]
    command = backend.command(turn)
    return [
        f"command:  {shlex.join(command.argv)} < {turn.spool}/prompt",
        f"gets:     {', '.join(sorted([*command.environment, MARK]))}",
        f"          and what is set here, without {', '.join(['RAYMOND_*', *command.without])}",
    ]


def _rights(start: RunStarted) -> str:
    if start.skip_permissions:
        return "agents may do anything unasked (--dangerously-skip-permissions)"
    tools = f"; allowed besides: {', '.join(start.allowed_tools)}" if start.allowed_tools else ""
    where = ", ".join([start.cwd, *start.roots])
    return f"{start.permission_mode or 'acceptEdits'}{tools}; directories: {where}"


def _limits(start: RunStarted, settings: Config) -> list[str]:
    def line(name: str, shown: str, key: str, value: object) -> str:
        setting = settings.settings[key]
        origin = setting.origin if setting.value == value else "the workflow"
        return f"{name + ':':<9} {shown} ({origin})"

    return [
        f"budget:   {f'${start.budget:.2f}' if start.budget else 'none'} ({start.budget_from})",
        line("steps", str(start.max_iterations or "no limit"), "max_iterations", start.max_iterations),
        line("time", durations.show(start.max_time) if start.max_time else "no limit", "max_time", start.max_time),
        f"turns:    {start.max_turns or 'no limit'} ({settings.settings['max_turns'].origin})",
        f"at once:  {start.max_turns_at_once} turns of a backend, {start.max_scripts_at_once} scripts",
        f"silence:  {durations.show(start.timeout or settings['timeout'])}",
    ]
