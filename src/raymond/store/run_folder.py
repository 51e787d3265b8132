"""The folder of one run: everything that is kept about it, and nothing of any other."""

import errno
import os

from msgspec import Struct

from raymond.errors import JournalError, RunExists, RunNotFound
from raymond.patterns import regex
from raymond.store.home import Home, Inside
from raymond.system import files, folders

BEYOND_REPAIR = "this cannot be repaired: restore a copy of the file, or move its folder away"
_LISTED = "`raymond list` shows the runs that are there"
_NO_FILE = (errno.EISDIR, errno.ELOOP, errno.EINVAL)
"""A folder, a link or a device is in its place."""

ID_FORM = regex(r"[A-Za-z0-9_-]{1,100}")
JOURNAL = "journal.jsonl"
SETTLED = "settled"
"""Instead of items that wait: a person has decided about everything that did not count."""


class RunFolder(Struct, frozen=True):
    """The folder of run `id`, and the paths in it."""

    home: Home
    path: str
    id: str

    def file(self, *names: str) -> str:
        """A path in the folder."""
        return "/".join((self.path, *names))

    journal = Inside(JOURNAL)
    """The truth about the run; its driver holds the lock on it."""
    source = Inside("source.zip")
    """The snapshot of its workflow."""
    driver = Inside("driver.json")
    """Who drives it."""
    state = Inside("state.json")
    """The state file: a cache of what the journal says, for `list`."""
    snapshot = Inside("snapshot")
    """The folded run: a cache too."""
    inbox = Inside("inbox")
    """Requests for the driver."""
    socket = Inside("socket")
    """Where the driver takes requests, and sees who sent them."""
    spool = Inside("spool")
    """What running turns print."""
    seals = Inside("seals")
    """What decides the checks of its visits."""
    workspace = Inside("workspace")
    """The trees that its agents work in, if they have one."""
    transcripts = Inside("transcripts")
    """What each step was sent and said."""
    blobs = Inside("blobs")
    """Long texts of the journal."""
    sessions = Inside("sessions")
    """Conversations of the scripted backend."""
    set_aside = Inside("loop/set-aside")
    """Of a loop: the items that wait for a person, one in each line, or SETTLED."""
    revised = Inside("loop/revised")
    """Of a loop that is over: what it came to since a person decided about items that it had set aside."""
    log = Inside("log")
    """What a background driver says."""
    pids = Inside("pids")
    """The processes of its steps, where there is no /proc."""
    noted = Inside("processes")
    """The processes that its driver has seen, so that they can be ended if it is killed."""
    cgroups = Inside("cgroups")
    """The cgroups that its drivers have made, for the same purpose."""
    beat = Inside("beat")
    """Touched every second by a driver whose time is limited."""
    moves = Inside("moves.json")
    """Which project it belonged to in each directory that it was moved from."""

    @property
    def exists(self) -> bool:
        """Whether there is such a run, if only one that cannot be read; a link to a folder elsewhere is none."""
        try:
            return folders.is_folder(self.path) and bool(os.lstat(self.journal))
        except PermissionError:
            return True
        except (OSError, ValueError):
            return False

    @property
    def _is_empty(self) -> bool:
        try:
            return folders.is_folder(self.path) and not os.listdir(self.path)
        except OSError:
            return False

    def in_the_way(self) -> RunExists | None:
        """Why no new run can have this folder; None when it is free."""
        if self.exists:
            hint = f"`raymond status {self.id}` shows it; choose another --id"
            return RunExists(f"run `{self.id}` already exists", path=self.path, hint=hint)
        if os.path.lexists(self.path) and not self._is_empty:
            hint = f"it is not a run: remove {self.path}, or choose another --id"
            return RunExists(f"{self.path} is in the way", path=self.path, hint=hint)
        return None


def cannot_open(folder: RunFolder, error: OSError) -> JournalError:
    """The error for a journal that the file system does not open; somebody may just have removed the run."""
    if error.errno == errno.ENOENT and not folders.is_folder(folder.path):
        return RunNotFound(f"run `{folder.id}` no longer exists", path=folder.journal, hint=_LISTED)
    return files.trouble(folder.journal, error, hint=_what_helps(folder, error))


def _what_helps(folder: RunFolder, error: OSError) -> str:
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
