"""Check that the programs that run scripts are installed, before any turn is paid for."""

import os

from raymond.errors import BackendError
from raymond.language import reach
from raymond.language.settings import SETTINGS_FILE
from raymond.language.workflow import Workflow, bare
from raymond.steps import script_step
from raymond.system import programs


def check(workflow: Workflow) -> None:
    """Refuse a workflow that leads to scripts which nothing here can run.

    Of two files of one state, for two systems, one is enough.
    """
    named = reach.of(workflow).named
    missing: dict[str, tuple[str, str]] = {}
    able = set[str]()
    for state in workflow.states.values():
        if state.kind != "script" or state.name not in named:
            continue
        program = script_step.runner(state.name, workflow.settings.python)[0]
        problem = "" if _is_relative(program) else programs.locate(program)[1]
        if problem:
            missing[state.name] = program, problem
        else:
            able.add(bare(state.name))
    for name, (program, problem) in missing.items():
        if bare(name) not in able:
            hint = f"correct `python` in {SETTINGS_FILE}" if os.path.isabs(program) else f"install {program}"
            raise BackendError(f"{name} cannot run: {problem}", backend=program, hint=hint)


def _is_relative(program: str) -> bool:
    """Whether it is looked for in the directory of the step, which nobody knows yet."""
    return "/" in program and not os.path.isabs(program)
