"""Read and write files; what is written is whole, private and on the disk."""

import os
from collections.abc import Callable
from typing import TypeVar

from raymond.errors import JournalError

_T = TypeVar("_T")


def make_private(path: str) -> None:
    """Create `path` and its missing parents as folders that only their owner may open."""
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
    """Write all of `data`, in as many calls as the system needs."""
    done = os.write(fd, data)
    while done < len(data):
        done += os.write(fd, data[done:])


def private(path: str, flags: int) -> int:
    """An opener for files that only their owner may read."""
    return os.open(path, flags, 0o600)


def replace(path: str, data: bytes, *, durable: bool = False, run: str = "") -> None:
    """Replace the content of `path` in one go, or leave it as it was."""
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
        raise trouble(path, error, run=run) from None


def sync(fd: int) -> None:
    """Wait until the disk has what was written to `fd`."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:
        import fcntl

        fcntl.fcntl(fd, getattr(fcntl, "F_FULLFSYNC"))  # noqa: B009 - macOS has it, the type stubs do not


def sync_folder(path: str) -> None:
    """Wait until the disk has the names of the files in `path`."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def trouble(path: str, error: OSError, *, hint: str = "", run: str = "") -> JournalError:
    """The error for a `path` that the file system refuses; `run` is the id of the run that can then be resumed."""
    then = f"`raymond resume {run}`" if run else "try again"
    return JournalError(
        f"{path}: {(error.strerror or str(error)).lower()}",
        path=path,
        hint=hint or f"nothing already written is lost: fix this, then {then}",
    )


def read(path: str, *, run: str = "") -> bytes:
    """The content of one of our files."""

    def work() -> bytes:
        with open(path, "rb") as file:
            return file.read()

    return guard(path, work, run=run)


def guard(path: str, work: Callable[[], _T], *, run: str = "") -> _T:
    """Do `work` on the file at `path`; what the file system refuses becomes an error that names the file."""
    try:
        return work()
    except FileExistsError:
        raise
    except OSError as error:
        raise trouble(path, error, run=run) from None
