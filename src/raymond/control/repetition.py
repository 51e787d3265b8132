"""A start that is repeated with the id of a run: which run that is, and whether it has to be continued."""

import os

from msgspec import Struct

from raymond.control import runs
from raymond.control.handle import RunHandle
from raymond.control.start import Choices, Loaded
from raymond.errors import RunExists, UsageError
from raymond.machine.events import RunStarted
from raymond.store import project as projects
from raymond.store.run_folder import ID_FORM

_HASH = 'printf %s "$KEY" | sha256sum | cut -c 1-64'


class Repetition(Struct, frozen=True):
    """The run that an earlier start with the same key has begun."""

    handle: RunHandle
    status: str
    same_input: bool
    is_cut_off: bool
    """It should be running, and a kill or a shutdown has ended the process that drove it."""


def check_key(key: str) -> None:
    """Refuse a key that cannot be the id of a run."""
    if not ID_FORM.fullmatch(key):
        hint = f"use up to 100 letters, digits, _ and -; of anything else, take a hash: {_HASH}"
        raise UsageError(f"`{key}` cannot be the id of a run", hint=hint)


def is_known(key: str, directory: str) -> bool:
    """Whether a run of the project of `directory` has this id."""
    return bool(key) and projects.at(os.path.abspath(directory)).run(key).exists


def of(loaded: Loaded, options: Choices) -> Repetition | None:
    """The run of this project that has the id already; None when there is none. Another workflow is a mistake."""
    project = runs.here()
    if not options.id or not project.run(options.id).exists:
        return None
    seen = runs.look(project, options.id)
    started = seen.run.start
    if not _is_same(started, loaded):
        raise _other(started, project.run(options.id).path)
    return Repetition(
        RunHandle(project, options.id, trusts_now=options.trust_project),
        seen.status,
        same_input=started.input == options.input,
        is_cut_off=not seen.pid and (seen.status == runs.INTERRUPTED or runs.was_shut_down(seen.run)),
    )


def _is_same(started: RunStarted, loaded: Loaded) -> bool:
    """Whether the run was started with this workflow, which may have changed or moved since, but not both."""
    is_same_text = started.source == loaded.digest
    return started.entry == loaded.workflow.entry and (is_same_text or started.scope_dir == loaded.scope_dir)


def _other(started: RunStarted, path: str) -> RunExists:
    what = f"the loop {started.loop}" if started.loop else f"{started.scope_dir} at {started.entry}"
    return RunExists(
        f"run `{started.workflow_id}` was started with another workflow, {what}",
        path=path,
        hint=f"`raymond status {started.workflow_id}` shows it; choose another --id",
    )


def is_driven(run: RunHandle) -> bool:
    """Whether a process drives it, or is about to."""
    return runs.is_driven(run.project.run(run.id))
