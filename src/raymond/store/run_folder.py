"""The folder of one run: everything that is kept about it, and nothing of any other."""

import errno
import os

from msgspec import Struct

from raymond.errors import JournalError, RunExists, RunNotFound
from raymond.patterns import regex
from raymond.store.home import Home
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
    """The paths in the folder of run `id`."""

    home: Home
    path: str
    id: str

    def file(self, *names: str) -> str:
        """A path in the folder."""
        return "/".join((self.path, *names))

    @property
    def journal(self) -> str:
        """The truth about the run; whoever drives it holds its lock."""
        return f"{self.path}/{JOURNAL}"

    @property
    def source(self) -> str:
        """The snapshot of its workflow."""
        return f"{self.path}/source.zip"

    @property
    def driver(self) -> str:
        """Who drives it."""
        return f"{self.path}/driver.json"

    @property
    def state(self) -> str:
        """The state file: a cache of what the journal says, for `list`."""
        return f"{self.path}/state.json"

    @property
    def snapshot(self) -> str:
        """The folded run: a cache too."""
        return f"{self.path}/snapshot"

    @property
    def inbox(self) -> str:
        """Requests for whoever drives it."""
        return f"{self.path}/inbox"

    @property
    def socket(self) -> str:
        """Where whoever drives it takes requests, and sees who sent them."""
        return f"{self.path}/socket"

    @property
    def spool(self) -> str:
        """What running turns print."""
        return f"{self.path}/spool"

    @property
    def seals(self) -> str:
        """What decides the checks of its visits."""
        return f"{self.path}/seals"

    @property
    def workspace(self) -> str:
        """The trees that its agents work in, if they have one."""
        return f"{self.path}/workspace"

    @property
    def transcripts(self) -> str:
        """What each step was sent and said."""
        return f"{self.path}/transcripts"

    @property
    def blobs(self) -> str:
        """Long texts of the journal."""
        return f"{self.path}/blobs"

    @property
    def sessions(self) -> str:
        """Conversations of the scripted backend."""
        return f"{self.path}/sessions"

    @property
    def set_aside(self) -> str:
        """Of a loop: the items that wait for a person, one in each line, or SETTLED."""
        return f"{self.path}/loop/set-aside"

    @property
    def revised(self) -> str:
        """Of a loop that is over: what it came to since a person decided about items that it had set aside."""
        return f"{self.path}/loop/revised"

    @property
    def log(self) -> str:
        """What a background driver says."""
        return f"{self.path}/log"

    @property
    def pids(self) -> str:
        """The processes of its steps, where there is no /proc."""
        return f"{self.path}/pids"

    @property
    def noted(self) -> str:
        """The processes that its driver has seen, for whoever ends what is left of them when it is killed."""
        return f"{self.path}/processes"

    @property
    def cgroups(self) -> str:
        """The cgroups that its drivers have made, for the same purpose."""
        return f"{self.path}/cgroups"

    @property
    def beat(self) -> str:
        """Touched every second by a driver whose time is limited."""
        return f"{self.path}/beat"

    @property
    def moves(self) -> str:
        """Which project it belonged to in each directory that it was moved from."""
        return f"{self.path}/moves.json"

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
