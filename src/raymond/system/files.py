"""Read and write files; what is written is whole, private and on the disk."""

import contextlib
import errno
import io
import os
import stat
from collections.abc import Callable
from typing import TypeVar

from raymond.errors import JournalError


def owner_name(uid: int) -> str:
    """The name of a user, for messages."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


_T = TypeVar("_T")
LARGEST = 256 << 20
"""Bytes of a file that is read whole; nothing we write is larger, except for what grows with a run."""


def make_private(path: str, *, durable: bool = False) -> None:
    """Create `path` and its missing parents as folders that only their owner may open; a link is not taken for one."""
    try:
        if stat.S_ISDIR(os.lstat(path).st_mode):
            return
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    except FileNotFoundError:
        above = os.path.dirname(path)
    if not os.path.isdir(above):
        make_private(above, durable=durable)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return make_private(path, durable=durable)  # somebody was faster
    if durable:
        sync_folder(above)


def write_all(fd: int, data: bytes | bytearray) -> None:
    """Write all of `data`, in as many calls as the system needs."""
    done = os.write(fd, data)
    while done < len(data):
        done += os.write(fd, data[done:])


def private(path: str, flags: int) -> int:
    """An opener for files that only their owner may read; a link is not followed, and a pipe not waited for."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)


def replace(path: str, data: bytes | bytearray, *, durable: bool = False, run: str = "") -> None:
    """Replace the content of `path` in one go, or leave it as it was."""
    aside = f"{path}.{os.urandom(4).hex()}.tmp"
    try:
        fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
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
        with contextlib.suppress(OSError):
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


def sync_disk(path: str) -> None:
    """Wait until everything that was written to the disk that holds a folder is on it."""
    import ctypes

    syncfs = getattr(ctypes.CDLL(None), "syncfs", None)
    if syncfs is None:
        return os.sync()
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        syncfs(fd)
    finally:
        os.close(fd)


def contents(path: str, most: int = -1, *, inside: int | None = None) -> bytes:
    """The content of a regular file, at most `most` bytes of it; a link, a device or a pipe is refused.

    Without `most` a file that is larger than `LARGEST` is refused too: a hole of a terabyte takes no room on a disk.
    """
    with regular(path, inside=inside) as file:
        if most < 0 and os.fstat(file.fileno()).st_size > LARGEST:
            raise OSError(errno.EFBIG, f"it is larger than {LARGEST >> 20} MiB", path)
        return file.read(most) or b""


def lines(path: str, longest: int, start: int = 0) -> bytes:
    """The content from `start` on of a file that grows by lines, up to the first `longest` bytes with no line end."""
    with regular(path) as file:
        file.seek(start)
        if os.fstat(file.fileno()).st_size - start <= longest:
            return file.read()
        pieces = []
        while piece := file.read(longest):
            pieces.append(piece)
            if len(piece) == longest and b"\n" not in piece:
                break
        return b"".join(pieces)


def regular(path: str, *, inside: int | None = None) -> io.FileIO:
    """A regular file, open for reading; a link, a device or a pipe is refused."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=inside)
    try:
        file = open(fd, "rb", buffering=0)
    except OSError:
        os.close(fd)  # a folder can be opened, but not as a file
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "not a regular file", path)
    return file


def foreign(path: str, most: int) -> bytes:
    """The content of a regular file of another program, wherever a link to it leads; one of more bytes is refused."""
    real = os.path.realpath(path)
    if os.stat(real).st_size > most:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
    return contents(real, most)


def guard(path: str, work: Callable[[], _T], *, run: str = "") -> _T:
    """Do `work` on the file at `path`; what the file system refuses becomes an error that names the file."""
    try:
        return work()
    except FileExistsError:
        raise
    except OSError as error:
        raise trouble(path, error, run=run) from None
