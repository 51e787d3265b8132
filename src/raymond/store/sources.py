"""The snapshot of a run's workflow: kept once for all runs of it, and in the folder of each."""

import contextlib
import os
from typing import TYPE_CHECKING

from raymond.errors import JournalError, WorkflowError
from raymond.store import zips
from raymond.store.home import Home
from raymond.store.run_folder import RunFolder
from raymond.system import files

if TYPE_CHECKING:
    from raymond.store.loader import Loaded

_NEXT = ".next"
"""Ends the name of a snapshot that a run is about to change to."""


def put(folder: RunFolder, loaded: "Loaded") -> None:
    """Put the snapshot into the folder of a run: as a link to the one that all runs share, else as a copy."""
    _put(folder, loaded, folder.source)


def prepare(folder: RunFolder, loaded: "Loaded") -> None:
    """Keep the snapshot beside the one in use, until the journal says that the run changes to it."""
    _put(folder, loaded, folder.source + _NEXT)
    files.sync_folder(folder.path)


def _put(folder: RunFolder, loaded: "Loaded", path: str) -> None:
    shared, data = _shared(folder.home, loaded.digest), loaded.source
    if not _holds(shared, data):
        files.replace(shared, data, durable=True)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    try:
        os.link(shared, path)
    except OSError:
        # There are no links here, or `clean` was faster.
        files.replace(path, data, durable=True)


def change(folder: RunFolder) -> None:
    """The journal says so: the prepared snapshot is the one in use. The one before stays: a repair may need it."""
    with contextlib.suppress(FileNotFoundError):
        # After a repair it need not be the one that the journal named last.
        os.rename(folder.source, _former(folder, _digest(folder.source) or "unknown"))
    os.replace(folder.source + _NEXT, folder.source)


def settle(folder: RunFolder, digest: str) -> None:
    """Finish or undo what a process that was killed had prepared; the journal names `digest`."""
    if not os.path.lexists(folder.source + _NEXT):
        return
    if _digest(folder.source) != digest and _digest(folder.source + _NEXT) == digest:
        change(folder)
    else:
        os.unlink(folder.source + _NEXT)


def read(folder: RunFolder, digest: str) -> dict[str, bytes]:
    """The files of the snapshot with this digest; one that is not what was kept is refused."""
    found = ""
    kept = (folder.source, folder.source + _NEXT, _former(folder, digest), _shared(folder.home, digest))
    for path in kept:
        try:
            contents = _contents(path)
        except (OSError, WorkflowError) as error:
            found = found or f"{path}: {str(getattr(error, 'strerror', '') or error).lower()}"
            continue
        if zips.digest(contents) == digest:
            return contents
        found = found or f"{path} was changed after it was kept"
    raise JournalError(
        f"the snapshot of the workflow cannot be read: {found}",
        path=folder.source,
        hint=f"restore the file, then `raymond resume {folder.id}`",
    )


def _digest(path: str) -> str:
    """The digest of a snapshot; empty when there is none that can be read."""
    try:
        return zips.digest(_contents(path))
    except (OSError, WorkflowError):
        return ""


def _contents(path: str) -> dict[str, bytes]:
    return zips.read_snapshot(files.contents(path), file=path)


def _former(folder: RunFolder, digest: str) -> str:
    """Where a run keeps a snapshot that it no longer uses."""
    return folder.file(f"source-{digest[:16]}.zip")


def _shared(home: Home, digest: str) -> str:
    return f"{home.sources}/{digest}.zip"


def _holds(path: str, data: bytes) -> bool:
    """Whether there is a snapshot at `path` with this content: a name proves nothing."""
    with contextlib.suppress(OSError):
        return os.lstat(path).st_size == len(data) and files.contents(path) == data
    return False
