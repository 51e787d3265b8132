"""Drive a run in the background; early errors are shown before the terminal is released."""

import os
import sys

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from raymond.cli import foreground
from raymond.cli.flags import ShowFlags
from raymond.control.drive import AS_IT_IS, HeldRun, Resumption
from raymond.control.handle import RunHandle
from raymond.errors import Error, NotContinued, RunBusy
from raymond.faces import errors, lines
from raymond.faces.foreign_text import said


class NotStarted(Struct, frozen=True):
    """The background process could not drive the run."""

    code: int
    trouble: str
    """The error, as it is shown."""
    is_driven: bool = False
    """Another process drives it."""
    is_briefly_held: bool = False
    """A process that has not said who it is holds the lock: it may be about to drive it, or only look at it."""
    is_left: bool = False
    """It was left to its owner."""
    is_told: bool = False
    """The error ends in the command that continues it."""


def start(handle: RunHandle, show: ShowFlags, how: Resumption = AS_IT_IS) -> int:
    """Drive the run in a new process; print its id once it is driven, or the error."""
    if handle.loaded and not show.quiet:
        introduce(handle)
    failed = launch(handle, show, how)
    if failed:
        print(failed.trouble, file=sys.stderr)
        return failed.code
    announce(handle, show)
    return 0


def introduce(handle: RunHandle) -> None:
    """The first line of a run that begins: who answers, who pays and up to what, which its log would keep to itself."""
    first, told = handle.decisions()[0], lines.Lines()
    told.add(replace(first, events=first.events[:1]), {}, "")
    told.refresh()


def announce(handle: RunHandle, show: ShowFlags) -> None:
    """Say that the run is driven in the background, and print its id."""
    tell_log(handle, show)
    print(f'{{"workflow_id":"{handle.id}"}}' if show.as_json else handle.id)


def tell_log(handle: RunHandle, show: ShowFlags) -> None:
    """Say where a run in the background writes what it says."""
    if not show.quiet:
        log = handle.project.run(handle.id).log
        print(said(f"running in the background; log: {log}", sys.stderr), file=sys.stderr)


def launch(handle: RunHandle, show: ShowFlags, how: Resumption = AS_IT_IS) -> NotStarted | None:
    """Drive the run in a new process; None once it is driven."""
    log = handle.project.run(handle.id).log
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    if os.fork():
        os.close(writer)
        with os.fdopen(reader, encoding="utf-8") as pipe:
            told = pipe.read()
        if told:
            return msgspec.json.decode(told, type=NotStarted | None)
        lost = "error: the background process was ended before it could drive the run"
        return NotStarted(1, f"{lost}\nhint: raymond resume {handle.id}")
    os.close(reader)
    os._exit(_child(handle, show, how, log, writer))


def _child(handle: RunHandle, show: ShowFlags, how: Resumption, log: str, writer: int) -> int:
    try:
        os.setsid()
        faces = foreground.faces_of(handle, show, lines.Lines())
        held = foreground.take(handle, faces, show, how)
        if held.run.is_over:
            return _tell(writer, _ended(held))
        faces.notify(foreground.targets(held.run, show))
        _redirect(log)
        _tell(writer, None)
    except (Error, OSError) as error:
        return _tell(writer, _failed(error, handle.id))
    try:
        code = foreground.finish(held, faces, show, how)
    except Error as error:
        print(errors.error(error), file=sys.stderr)
        code = error.exit_code
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _tell(writer: int, failed: NotStarted | None) -> int:
    """Tell the process that waits whether the run is driven."""
    os.write(writer, msgspec.json.encode(failed))
    os.close(writer)
    return failed.code if failed else 0


def _ended(held: HeldRun) -> NotStarted:
    held.close()
    return NotStarted(0, f"{held.run.start.workflow_id} has ended: nothing to resume")


def _failed(error: Error | OSError, id: str) -> NotStarted:
    known = error if isinstance(error, Error) else _refused(error, id)
    is_driven, is_left = isinstance(known, RunBusy) and known.drives, isinstance(known, NotContinued)
    told = str(known) if is_left else errors.error(known)
    is_brief = isinstance(known, RunBusy) and not known.pid
    return NotStarted(known.exit_code, told, is_driven, is_brief, is_left, bool(known.again))


def _refused(error: OSError, id: str) -> Error:
    what = f"{error.filename or 'the system refused a call'}: {(error.strerror or '').lower()}"
    return Error(what, hint=f"nothing already written is lost: fix this, then `raymond resume {id}`")


def _redirect(log: str) -> None:
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, null), (1, fd), (2, fd)):
        os.dup2(source, target)
