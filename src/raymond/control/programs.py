"""What answers the prompts of a run: program, version and who pays, now and under its last driver."""

import os
from collections.abc import Container, Iterable

from raymond.backends import Found, guard, registry
from raymond.backends.registry import SCRIPTED, Tables
from raymond.errors import BackendError
from raymond.faces import words
from raymond.language import judges, reach
from raymond.language.workflow import Workflow
from raymond.machine.events import Program, RunStarted
from raymond.machine.run import Run
from raymond.store.loader import REPLIES_FILE
from raymond.system.programs import numbers


def of(start: RunStarted, workflow: Workflow, tables: Tables, before: Iterable[str] = ()) -> list[Program]:
    """What would answer the prompts that the entry can lead to; a run of scripts asks no program.

    What answered `before`, because an agent named a state that nothing else leads to, may answer again.
    """
    prompts = [state.name for state in judges.answered(workflow)]
    possible = reach.of(workflow).possible if prompts else ()
    prompts = [state for state in prompts if state in possible]
    known = {start.backend, *start.backends.values()}
    names = [start.backends.get(state, start.backend) for state in prompts]
    return now(start, dict.fromkeys([*names, *(name for name in before if name in known)]), tables)


def now(start: RunStarted, names: Iterable[str], tables: Tables) -> list[Program]:
    """These backends as they are now."""
    return [_scripted(name, start) if name in SCRIPTED else _program(name, _looked(name, tables)) for name in names]


def checked(start: RunStarted, name: str, tables: Tables) -> tuple[Program, str]:
    """One of them, and why it cannot be used, in the words of a start; empty when it can."""
    if name in SCRIPTED:
        return _scripted(name, start), ""
    try:
        found = _looked(name, tables, raising=True)
    except OSError:
        return Program(name=name), ""  # its turn cannot be started now either, and is put off
    why = f"{found.problem} ({found.hint})" if found.problem and found.hint else found.problem
    return _program(name, found), why


def check_ahead(start: RunStarted, workflow: Workflow, reached: Container[str], tables: Tables) -> None:
    """Refuse to continue a run if nothing answers a prompt among the states that its agents can still come to."""
    prompts = (one.name for one in judges.answered(workflow) if one.name in reached)
    for name in dict.fromkeys(start.backends.get(state, start.backend) for state in prompts):
        try:
            found = Found(program="") if name in SCRIPTED else _looked(name, tables, raising=True)
        except OSError:
            continue  # its turn cannot be started now either, and is put off
        if found.problem:
            hint, again = found.hint or "when that is mended", f"raymond resume {start.workflow_id}"
            raise BackendError(found.problem, backend=name, hint=hint, again=again)


def _scripted(name: str, start: RunStarted) -> Program:
    if start.replies:
        return Program(name=name, payer="--replies")
    return Program(name=name, payer=os.path.join(os.path.basename(start.scope_dir), REPLIES_FILE))


def _looked(name: str, tables: Tables, *, raising: bool = False) -> Found:
    try:
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
    found = now(run.start, [one.name for one in run.programs], tables)
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
