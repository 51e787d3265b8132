"""Write files so that they are whole, private and on the disk."""

import os
import re
from collections.abc import Callable
from typing import TypeVar

from raymond.errors import JournalError

_T = TypeVar("_T")
_RUN = re.compile(r".*/\.raymond/(?:workflows|transcripts|sessions|tasks|spool|logs)/([A-Za-z0-9_-]+)")


def make_private(path: str) -> None:
    """A folder nobody else may look into, and every folder above it that is not there yet."""
    if not os.path.isdir(path):
        above = os.path.dirname(path)
        if above != path:
            make_private(above)
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            if not os.path.isdir(path):
                raise


def write_all(fd: int, data: bytes) -> None:
    """Hand all of `data` to the system, which may take it in parts."""
    done = os.write(fd, data)
    while done < len(data):
        done += os.write(fd, data[done:])


def private(path: str, flags: int) -> int:
    """An opener for files nobody else may read."""
    return os.open(path, flags, 0o600)


def replace(path: str, data: bytes, *, durable: bool = False) -> None:
    """Put `data` at `path` at once, or leave what was there."""
    aside = f"{path}.{os.getpid()}.tmp"
    try:
        fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            write_all(fd, data)
            if durable:
                sync(fd)
        finally:
            os.close(fd)
        os.replace(aside, path)
        if durable:
            sync_folder(os.path.dirname(path))
    except OSError as error:
        if os.path.exists(aside):
            os.unlink(aside)
        raise trouble(path, error) from None


def sync(fd: int) -> None:
    """Wait until the disk has what was written to `fd`."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:
        import fcntl

        fcntl.fcntl(fd, getattr(fcntl, "F_FULLFSYNC"))  # noqa: B009 - macOS has it, the type stubs do not


def sync_folder(path: str) -> None:
    """Wait until the disk knows the names in `path`."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def trouble(path: str, error: OSError, *, hint: str = "") -> JournalError:
    """The file system refuses `path`: what was journaled before stays true."""
    run = _RUN.match(path)
    then = f"`raymond resume {run[1]}`" if run else "try again"
    return JournalError(
        f"{path}: {(error.strerror or str(error)).lower()}",
        path=path,
        hint=hint or f"nothing that was written before is lost; mend this, then {then}",
    )


def read(path: str) -> bytes:
    """The content of a file of ours."""

    def work() -> bytes:
        with open(path, "rb") as file:
            return file.read()

    return guard(path, work)


def guard(path: str, work: Callable[[], _T]) -> _T:
    """The door through which trouble of the file system comes in, named for the file."""
    try:
        return work()
    except FileExistsError:
        raise
    except OSError as error:
        raise trouble(path, error) from None
