"""The file of a journal, read as far as it makes sense and memory suffices."""

import contextlib
import errno
from collections.abc import Callable, Iterator

from raymond.errors import JournalError, RunNotFound
from raymond.store.run_folder import RunFolder
from raymond.system import files, folders

LONGEST = 128 << 20
"""Bytes in a line: texts are blobs, so no decision comes near it."""
BEYOND_REPAIR = "this cannot be repaired: restore a copy of the file, or move its folder away"
_LISTED = "`raymond list` shows the runs that are there"
_NO_FILE = (errno.EISDIR, errno.ELOOP, errno.EINVAL)
"""A folder, a link or a device is in its place."""


def content(folder: RunFolder) -> bytes:
    """All of it; of a line that is too long only the beginning, and nothing after that."""
    return _read(folder, lambda: files.lines(folder.journal, LONGEST))


def beginning(folder: RunFolder, most: int) -> bytes:
    """Its first `most` bytes."""
    return _read(folder, lambda: files.contents(folder.journal, most))


def _read(folder: RunFolder, read: Callable[[], bytes]) -> bytes:
    try:
        return read()
    except OSError as error:
        raise refused(folder, error) from None


def refused(folder: RunFolder, error: OSError) -> JournalError:
    """The error for a journal that the file system does not open; somebody may just have removed the run."""
    if error.errno == errno.ENOENT and not folders.is_folder(folder.path):
        return RunNotFound(f"run `{folder.id}` no longer exists", path=folder.journal, hint=_LISTED)
    return files.trouble(folder.journal, error, hint=_way_out(folder, error))


def _way_out(folder: RunFolder, error: OSError) -> str:
    """What helps: to resume the run would need its journal as well."""
    match error.errno:
        case errno.EACCES | errno.EPERM:
            return f"chmod u+rw {folder.journal}, as the user it belongs to; then the same command again"
        case errno.ENOENT:
            return _LISTED
        case number if number in _NO_FILE:
            return BEYOND_REPAIR
        case _:
            return "nothing was changed: fix this, then the same command again; `raymond doctor` looks at every run"


@contextlib.contextmanager
def memory(folder: RunFolder) -> Iterator[None]:
    """One run that is too large for this machine must not keep the others from being shown."""
    try:
        yield
    except MemoryError:
        message = f"there is not enough memory to read {folder.journal}"
        raise JournalError(message, path=folder.journal, hint="give this command more memory") from None
