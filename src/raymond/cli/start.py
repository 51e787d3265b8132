"""`raymond start`: start a workflow once for each event."""

import contextlib
import os
import sys
import time
from collections.abc import Iterator

import msgspec

from raymond import pasted
from raymond.cli import driving, flags, run
from raymond.cli.command import as_command
from raymond.cli.flags import ShowFlags, StartFlags
from raymond.control import start
from raymond.control.drive import Resumption
from raymond.control.handle import RunHandle
from raymond.control.start import Repetition
from raymond.errors import (
    Error,
    NotContinued,
    RunBusy,
    RunDriven,
    RunExists,
    RunNotFound,
    WorkflowError,
    WorkflowNotFound,
)
from raymond.text import visible

_HOW = Resumption(retries=False, by_itself=True)
"""Nobody asked for a resume: what failed, and what a person or a limit stopped, stays as it is."""
_PATIENCE = 5.0
"""Seconds to wait for a process that holds the lock and has not said who it is."""
_PAUSE = 0.05
_LONGEST_NAME = 1000
"""Characters of what may be the name of a file."""


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """What `start --json` prints."""

    workflow_id: str
    started: bool
    """False: it was started before."""
    continued: bool = False
    same_input: bool = True
    status: str = "running"


@as_command("start", grouped=True)
@flags.starting_once
def command(path: str, given: StartFlags) -> int:
    """Start the workflow in PATH in the background: a folder, a zip, or one state file.

    With --id KEY it is started once: a repetition exits with 0 and starts nothing. If a kill or a shutdown cut off the
    run of KEY, a repetition continues it.
    """
    if given.run["id"]:
        start.check_id(given.run["id"])
    _check_input(given.run["input"])
    if given.dry_run:
        return _rehearse(path, given)
    with _of_workflow():
        loaded, given, options = run.prepared(path, given)
    before = start.find_repetition(loaded, options)
    if before:
        return _repeat(before, given.show)
    try:
        begun = start.begin_here(loaded, options)
    except RunExists:
        before = start.find_repetition(loaded, options)  # another process was faster
        if before is None:
            raise
        return _repeat(before, given.show)
    with run.begun(begun.id):
        run.warn(begun, path)
        return _begin(begun, given.show)


def _check_input(given: str | None) -> None:
    """Warn of the name of a file where its text is probably meant."""
    if given and given != "-" and not given.startswith("@") and len(given) < _LONGEST_NAME and os.path.isfile(given):
        flag = pasted.flag("--input", f"@{given}", "@FILE")
        print(f"warning: --input is text, and {visible(given)} is a file: {flag} reads it", file=sys.stderr)


@contextlib.contextmanager
def _of_workflow() -> Iterator[None]:
    """Whoever delivers events tells by the exit code what is wrong: a workflow that is missing is not the event."""
    try:
        yield
    except WorkflowNotFound as missing:
        missing.exit_code = WorkflowError.exit_code
        raise


def _rehearse(path: str, given: StartFlags) -> int:
    """Show what would start, or what a repetition would do; the exit code is that of the command itself."""
    is_missing, id = not os.path.lexists(path), given.run["id"]
    with _of_workflow():
        if not start.is_id_taken(id, given.cd or os.getcwd()):
            code = run.rehearse(path, given)
            return WorkflowError.exit_code if is_missing and code else code
        loaded, given, options = run.prepared(path, msgspec.structs.replace(given, run_gates=False))
    before = start.find_repetition(loaded, options)
    if before is None:
        raise RunNotFound(f"run `{id}` has just been removed", hint="try again")
    if not before.same_input:
        print(f"{id} was started before, with another input, which it keeps", file=sys.stderr)
    if before.is_cut_off:
        print(f"{id} was started before, and no process runs it: it would continue", file=sys.stderr)
    else:
        print(f"nothing would start: {_known(id)}", file=sys.stderr)
    if given.show.as_json:
        _print(_begun(before), given.show)
    return 0


def _begun(before: Repetition) -> Begun:
    """What is printed about a run that was started before; `continued` is also what a dry run foresees."""
    id, same = before.handle.id, before.same_input
    return Begun(workflow_id=id, started=False, continued=before.is_cut_off, same_input=same, status=before.status)


def _begin(begun: RunHandle, show: ShowFlags) -> int:
    """Drive the run that this process has begun, unless a repetition was faster: then that one drives it."""
    if not show.quiet:
        driving.print_first_line(begun)
    try:
        _launch(begun, show)
    except Error as error:
        if not _is_cared_for(begun, error):
            raise
    driving.tell_log(begun, show)
    return _print(Begun(workflow_id=begun.id, started=True), show)


def _repeat(before: Repetition, show: ShowFlags) -> int:
    """Say that there is such a run; one that was cut off continues, as `resume --all` would continue it."""
    id = before.handle.id
    if not before.same_input:
        print(f"{id} was started before, with another input: raymond status {id}", file=sys.stderr)
    again = msgspec.structs.replace(_begun(before), continued=False)
    if not before.is_cut_off:
        if before.same_input and not show.quiet:
            print(_known(id), file=sys.stderr)
        return _print(again, show)
    try:
        _launch(before.handle, driving.with_last_log(before.handle, show))
    except Error as error:
        if not _is_cared_for(before.handle, error):
            print(f"{id} was started before, no process runs it, and it was not continued", file=sys.stderr)
            raise
        print(visible(str(error)) if isinstance(error, NotContinued) else _known(id), file=sys.stderr)
        return _print(again, show)
    print(f"{id} was started before, and no process was running it: it continues", file=sys.stderr)
    driving.tell_log(before.handle, show)
    return _print(msgspec.structs.replace(again, continued=True, status="running"), show)


def _launch(handle: RunHandle, show: ShowFlags) -> None:
    """Drive the run, also if another start holds its lock for a moment without driving it yet."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return driving.launch(handle, show, _HOW)
        except RunBusy as busy:
            if busy.pid or time.monotonic() > until:
                raise
        time.sleep(_PAUSE)


def _is_cared_for(handle: RunHandle, error: Error) -> bool:
    """Whether another process drives the run or has driven it, or it is left to its owner."""
    return isinstance(error, RunDriven | NotContinued) or start.has_driver(handle)


def _known(id: str) -> str:
    return f"{id} was started before: raymond status {id}"


def _print(begun: Begun, show: ShowFlags) -> int:
    print(msgspec.json.encode(begun).decode() if show.as_json else begun.workflow_id)
    return 0
