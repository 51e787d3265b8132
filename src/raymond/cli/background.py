"""Drive a run in the background; early errors are shown before the terminal is released."""

import os
import sys

from msgspec import Struct

from raymond.cli import foreground
from raymond.cli.flags import ShowFlags
from raymond.control.drive import AS_IT_IS, Resumption, hold
from raymond.control.handle import RunHandle
from raymond.errors import Error
from raymond.faces import errors, lines


class NotStarted(Struct, frozen=True):
    """The background process could not drive the run."""

    code: int
    trouble: str
    """The error, as it is shown."""


def start(handle: RunHandle, show: ShowFlags, how: Resumption = AS_IT_IS) -> int:
    """Drive the run in a new process; print its id once it is driven, or the error."""
    failed = launch(handle, show, how)
    if failed:
        print(failed.trouble, file=sys.stderr)
        return failed.code
    if not show.quiet:
        print(f"running in the background; log: {handle.project.run(handle.id).log}", file=sys.stderr)
    print(f'{{"workflow_id":"{handle.id}"}}' if show.as_json else handle.id)
    return 0


def launch(handle: RunHandle, show: ShowFlags, how: Resumption = AS_IT_IS) -> NotStarted | None:
    """Drive the run in a new process; None once it is driven."""
    log = handle.project.run(handle.id).log
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    if os.fork():
        os.close(writer)
        with os.fdopen(reader, encoding="utf-8") as pipe:
            code, _, trouble = pipe.read().partition("\n")
        if code == "0":
            return None
        lost = "error: the background process was ended before it could drive the run"
        return NotStarted(int(code or 1), trouble or f"{lost}\nhint: raymond resume {handle.id}")
    os.close(reader)
    os._exit(_child(handle, show, how, log, writer))


def _child(handle: RunHandle, show: ShowFlags, how: Resumption, log: str, writer: int) -> int:
    try:
        os.setsid()
        faces = foreground.faces_of(handle, show, lines.Lines())
        held = hold(
            handle.project,
            handle.id,
            faces,
            loaded=handle.loaded,
            force=how.force,
            trusts_now=handle.trusts_now,
            alone=True,
        )
        faces.notify(foreground.targets(held.run, show))
        _redirect(log)
        os.write(writer, b"0\n")
        os.close(writer)
    except (Error, OSError) as error:
        known = error if isinstance(error, Error) else _refused(error, handle.id)
        os.write(writer, f"{known.exit_code}\n{errors.error(known)}".encode())
        return 1
    try:
        code = foreground.finish(held, faces, show, how)
    except Error as error:
        print(errors.error(error), file=sys.stderr)
        code = error.exit_code
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _refused(error: OSError, id: str) -> Error:
    what = f"{error.filename or 'the system refused a call'}: {(error.strerror or '').lower()}"
    return Error(what, hint=f"nothing already written is lost: fix this, then `raymond resume {id}`")


def _redirect(log: str) -> None:
    fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, null), (1, fd), (2, fd)):
        os.dup2(source, target)
