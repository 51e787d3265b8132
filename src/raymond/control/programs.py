"""The programs that a run needs: what runs its scripts, what answers its prompts, and whether that has changed."""

import os
from collections.abc import Container, Iterable

from raymond.backends import Found, registry
from raymond.backends.registry import SCRIPTED, Tables
from raymond.errors import BackendError, WorkflowError
from raymond.faces import words
from raymond.language import frontmatter, judges, reach
from raymond.language.findings import OF_NAME
from raymond.language.frontmatter import Mark
from raymond.language.refusal import Refusal
from raymond.language.settings import SETTINGS_FILE
from raymond.language.workflow import Workflow, bare, resolve
from raymond.machine.events import Program, RunStarted
from raymond.machine.run import Run
from raymond.steps import script_step
from raymond.store.loader import REPLIES_FILE
from raymond.system import programs
from raymond.system.programs import numbers

# --- what runs scripts


def check_scripts(workflow: Workflow, reached: Container[str] | None = None, *, id: str = "") -> None:
    """Refuse a workflow that leads to scripts which nothing here can run.

    Of run `id`, which is to continue, those count that its agents can still have `reached`.
    """
    for name, program, problem in _missing_scripts(workflow, reached):
        refused = resolve(workflow, name)
        if isinstance(refused, Refusal):  # it is for another system: no program that one could install would run it
            mark, kind = Mark(name), OF_NAME[refused.kind]
            raise WorkflowError(frontmatter.diagnose(mark, kind, refused.reason, refused.hint))
        is_set = os.path.isabs(program)
        hint = f"correct `python` in {SETTINGS_FILE}" if is_set else f"install {program}"
        again = f"raymond resume {id}" if id else ""
        if again and is_set:
            again += " --latest"  # the run has its own copy of the settings
        raise BackendError(f"{name} cannot run: {problem}", backend=program, hint=hint, again=again)


def _missing_scripts(workflow: Workflow, reached: Container[str] | None) -> list[tuple[str, str, str]]:
    """The scripts among the states `reached` that cannot run, with their program and what is wrong with it.

    Of two files of one state, for two systems, one is enough.
    """
    scripts = [state.name for state in workflow.states.values() if state.kind == "script"]
    runs = {name: script_step.runner(name, workflow.settings.python)[0] for name in scripts}
    found = {program: "" if _is_relative(program) else programs.locate(program)[1] for program in {*runs.values()}}
    if not any(found.values()):
        return []  # whatever is reached, which takes long to find out
    reached = reach.of(workflow).named if reached is None else reached
    missing: list[tuple[str, str, str]] = []
    able = set[str]()
    for name, program in runs.items():
        if name in reached and found[program]:
            missing.append((name, program, found[program]))
        elif name in reached:
            able.add(bare(name))
    return [one for one in missing if bare(one[0]) not in able]


def _is_relative(program: str) -> bool:
    """Whether it is looked for in the directory of the step, which nobody knows yet."""
    return "/" in program and not os.path.isabs(program)


# --- what answers prompts


def answering(start: RunStarted, workflow: Workflow, tables: Tables, before: Iterable[str] = ()) -> list[Program]:
    """What would answer the prompts that the entry can lead to; a run of scripts asks no program.

    What answered `before`, because an agent named a state that nothing else leads to, may answer again.
    """
    prompts = [state.name for state in judges.answered(workflow)]
    possible = reach.of(workflow).possible if prompts else ()
    prompts = [state for state in prompts if state in possible]
    known = {start.backend, *start.backends.values()}
    names = [start.backends.get(state, start.backend) for state in prompts]
    return current(start, dict.fromkeys([*names, *(name for name in before if name in known)]), tables)


def current(start: RunStarted, names: Iterable[str], tables: Tables) -> list[Program]:
    """These backends as they are now."""
    return [_scripted(name, start) if name in SCRIPTED else _program(name, _look_up(name, tables)) for name in names]


def examine(start: RunStarted, name: str, tables: Tables) -> tuple[Program, str]:
    """One of them, and why it cannot be used, in the words of a start; empty when it can."""
    if name in SCRIPTED:
        return _scripted(name, start), ""
    try:
        found = _look_up(name, tables, raising=True)
    except OSError:
        return Program(name=name), ""  # its turn cannot be started now either, and is put off
    why = f"{found.problem} ({found.hint})" if found.problem and found.hint else found.problem
    return _program(name, found), why


def check_reached_prompts(start: RunStarted, workflow: Workflow, reached: Container[str], tables: Tables) -> None:
    """Refuse to continue a run if nothing answers a prompt among the states that its agents can still come to."""
    prompts = (one.name for one in judges.answered(workflow) if one.name in reached)
    for name in dict.fromkeys(start.backends.get(state, start.backend) for state in prompts):
        try:
            found = Found(program="") if name in SCRIPTED else _look_up(name, tables, raising=True)
        except OSError:
            continue  # its turn cannot be started now either, and is put off
        if found.problem:
            hint, again = found.hint or "when that is mended", f"raymond resume {start.workflow_id}"
            raise BackendError(found.problem, backend=name, hint=hint, again=again)


def _scripted(name: str, start: RunStarted) -> Program:
    if start.replies:
        return Program(name=name, payer="--replies")
    return Program(name=name, payer=os.path.join(os.path.basename(start.scope_dir), REPLIES_FILE))


def _look_up(name: str, tables: Tables, *, raising: bool = False) -> Found:
    try:
        from raymond.backends import guard  # a run of scripts asks no program

        return guard.look(registry.backend(name, tables), raising=raising)
    except BackendError as error:
        return Found(program="", problem=str(error), hint=error.hint)


def _program(name: str, found: Found) -> Program:
    version = ".".join(map(str, numbers(found.version))) or found.version
    payer = f"{found.payer}, fingerprint {found.key}" if found.key and found.payer else found.payer
    path = os.path.realpath(found.program) if found.program else ""
    return Program(name=name, version=version, payer=payer, path=path, host=found.host, account=found.account)


def difference(run: Run, tables: Tables) -> str:
    """What has changed since the last driver of the run; empty when nothing has."""
    found = current(run.start, [one.name for one in run.programs], tables)
    for before, after in zip(run.programs, found, strict=True):
        if told := _changed(before, after):
            return told
    return ""


def _changed(before: Program, after: Program) -> str:
    if before == after:
        return ""
    one, other = words.program(before), words.program(after)
    if one == other and before.path != after.path:
        one, other = before.path, after.path
    if one == other:
        return f"{after.name} would be paid by another account, or elsewhere, than under the run's last driver"
    return f"the run's last driver used {one}, and here it would be {other}"
