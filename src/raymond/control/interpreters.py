"""Check that the programs that run scripts are installed, before any turn is paid for."""

import os
from collections.abc import Container

from raymond.errors import BackendError, WorkflowError
from raymond.language import frontmatter, reach
from raymond.language.findings import OF_NAME
from raymond.language.frontmatter import Mark
from raymond.language.refusal import Refusal
from raymond.language.settings import SETTINGS_FILE
from raymond.language.workflow import Workflow, bare, resolve
from raymond.steps import script_step
from raymond.system import programs


def check(workflow: Workflow) -> None:
    """Refuse a workflow that leads to scripts which nothing here can run."""
    for name, program, problem in _missing(workflow, reach.of(workflow).named):
        _check_platform(workflow, name)
        raise BackendError(f"{name} cannot run: {problem}", backend=program, hint=_hint(program))


def check_ahead(id: str, workflow: Workflow, reached: Container[str]) -> None:
    """Refuse to continue run `id` if such a script is among the states that its agents can still come to."""
    for name, program, problem in _missing(workflow, reached):
        _check_platform(workflow, name)
        again = f"raymond resume {id}"
        if os.path.isabs(program):
            again += " --latest"  # the run has its own copy of the settings
        raise BackendError(f"{name} cannot run: {problem}", backend=program, hint=_hint(program), again=again)


def _check_platform(workflow: Workflow, name: str) -> None:
    """Refuse a script that is for another system: no program that one could install would run it here."""
    refused = resolve(workflow, name)
    if isinstance(refused, Refusal):
        raise WorkflowError(frontmatter.diagnose(Mark(name), OF_NAME[refused.kind], refused.reason, refused.hint))


def _hint(program: str) -> str:
    return f"correct `python` in {SETTINGS_FILE}" if os.path.isabs(program) else f"install {program}"


def _missing(workflow: Workflow, reached: Container[str]) -> list[tuple[str, str, str]]:
    """The scripts among the states `reached` that cannot run, with their program and what is wrong with it.

    Of two files of one state, for two systems, one is enough.
    """
    missing: list[tuple[str, str, str]] = []
    able = set[str]()
    for state in workflow.states.values():
        if state.kind != "script" or state.name not in reached:
            continue
        program = script_step.runner(state.name, workflow.settings.python)[0]
        problem = "" if _is_relative(program) else programs.locate(program)[1]
        if problem:
            missing.append((state.name, program, problem))
        else:
            able.add(bare(state.name))
    return [one for one in missing if bare(one[0]) not in able]


def _is_relative(program: str) -> bool:
    """Whether it is looked for in the directory of the step, which nobody knows yet."""
    return "/" in program and not os.path.isabs(program)
