"""The lock of a run: whoever drives it holds its journal, so no other file can let two of them drive.

Who holds it, which run a process drives, and until when a run was driven.
"""

import contextlib
import os
import time
from collections.abc import Callable

import msgspec
from msgspec import Struct

from raymond import errors
from raymond.errors import JournalError, RunBusy, RunDriven
from raymond.store import home, run_folder
from raymond.store.run_folder import ID_FORM, JOURNAL, RunFolder
from raymond.system import files, folders, locks
from raymond.system.files import private
from raymond.system.locks import LOCKS
from raymond.system.processes import start_time

LOOKED_AT = 0.5
"""Seconds to wait for a lock whose holder is unknown: somebody may only be looking at it, or be about to sign."""
_SHOWN_CHARACTERS = 80
"""Characters of a command line that are shown."""

_BEGINNINGS = (b'{"format":', b'{"seq":')
"""How journals begin."""


class Holder(Struct):
    """Who holds a lock: the content of driver.json."""

    pid: int = 0
    host: str = ""
    started: str = ""
    """Start time of the process, as the kernel gives it."""
    socket: str = ""
    """Where it takes requests: its socket, `inbox`, or nothing yet."""


class ForeignHolder(Holder):
    """Who holds a lock although the process that signed is dead: any step can take it then, and drives nothing."""

    command: str = ""

    def told(self, id: str) -> str:
        """What is wrong with run `id`."""
        return f"process {self.pid} ({self.command}) holds the lock of {id} and does not drive it"

    def way_out(self, id: str) -> str:
        """How to get rid of it."""
        return f"`raymond stop {id} --now` ends it if a step left it running; if not: kill {self.pid}"


class Lock:
    """The journal of a run, held by this process until `release`."""

    def __init__(self, folder: RunFolder, fd: int, before: Holder) -> None:
        self.fd = fd
        """The journal, open for reading and appending."""
        self._folder = folder
        self._before = before
        self._size = os.fstat(fd).st_size
        self._signed = False

    def sign(self, socket: str = "", *, needed: bool = True) -> None:
        """Record this process as the holder, and where it takes requests; call it again after a fork.

        Unless that is `needed`, a name that cannot be written is left out: it keeps nobody away, the lock does.
        """
        holder = Holder(os.getpid(), os.uname().nodename, start_time(os.getpid()), socket)
        try:
            _write(self._folder, holder)
        except JournalError:
            if not needed:
                return
            if not self._signed:
                self._let_go()
            raise
        self._signed = True

    def replace(self, fd: int, rename: Callable[[], None]) -> None:
        """Hold the file that is open as `fd` instead, which `rename` gives the name of the journal."""
        LOCKS.take(fd)
        rename()
        old, self.fd = self.fd, fd
        os.close(old)

    def follow(self, folder: RunFolder) -> None:
        """The folder of the run was moved."""
        self._folder = folder

    def release(self) -> None:
        """Let others drive the run."""
        if self.fd >= 0:
            with contextlib.suppress(OSError, JournalError):
                self._unsign()
            self._let_go()

    def _unsign(self) -> None:
        """Take our name back; one of another host that we overruled returns if we then did nothing to the run."""
        if self._signed and _is_elsewhere(self._before) and os.fstat(self.fd).st_size == self._size:
            _write(self._folder, self._before)
        elif self._signed:
            os.unlink(self._folder.driver)

    def _let_go(self) -> None:
        # Closing is not enough: a child that is just starting may hold a copy of the descriptor a moment longer.
        with contextlib.suppress(OSError):
            LOCKS.release(self.fd)
        os.close(self.fd)
        self.fd = -1


def take(
    folder: RunFolder, *, force: bool = False, sign: bool = True, brief: bool = False, has_flag: bool = True
) -> Lock:
    """Hold the lock of a run, or raise RunBusy with its holder.

    Whoever only removes the run need not `sign`. `brief`: it is held for a moment, to write something down, so that a
    name for which the disk has no room can be left out. `has_flag`: the person can be told to use --force.
    """
    fd, is_locked = _hold(folder, force, has_flag)
    holder = signed(folder)
    if _is_elsewhere(holder) and not force:
        os.close(fd)
        raise RunBusy(
            f"process {holder.pid} on {holder.host} locked {folder.id} and did not release it",
            path=folder.journal,
            pid=holder.pid,
            host=holder.host,
            hint=f"make sure that it is gone from {holder.host}, then "
            + ("use --force" if has_flag else f"remove {folder.driver}"),
        )
    held = Lock(folder, fd, holder)
    if sign:
        held.sign(needed=not (brief and is_locked))
    return held


def _hold(folder: RunFolder, force: bool, has_flag: bool) -> tuple[int, bool]:
    """The journal, and whether it is locked: with `force` also where no file can be.

    Somebody may only be looking at it, and it may be replaced while we wait for it.
    """
    until = time.monotonic() + LOOKED_AT
    while True:
        fd = _open(folder)
        try:
            if LOCKS.take(fd):
                if _is_current(fd, folder.journal):
                    return fd, True
                os.close(fd)
                continue
        except OSError as error:
            if force:
                return fd, False
            os.close(fd)
            raise _cannot_lock(folder, error, has_flag) from None
        os.close(fd)
        if _is_signed(signed(folder)) or time.monotonic() > until:
            raise _busy(folder)
        time.sleep(0.005)


def _open(folder: RunFolder) -> int:
    flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(folder.journal, flags)
    except OSError as error:
        raise run_folder.cannot_open(folder, error) from None


def _is_current(fd: int, path: str) -> bool:
    """Whether `path` is still the file that is open as `fd`."""
    try:
        return os.path.samestat(os.fstat(fd), os.lstat(path))
    except FileNotFoundError:
        return False


def _is_signed(holder: Holder) -> bool:
    """Whether the process that signed can be the one that holds the lock; one of another host cannot be looked at."""
    if not holder.pid or _is_elsewhere(holder):
        return bool(holder.pid)
    return start_time(holder.pid) == holder.started


def holder(folder: RunFolder) -> Holder | None:
    """Who holds the lock now; None when nobody does."""
    try:
        fd = files.private(folder.journal, os.O_RDONLY)
    except OSError:
        return None
    try:
        if not LOCKS.is_taken(fd):
            return None
        named = signed(folder)
        return named if not named.pid or _is_signed(named) else _unsigned(folder, fd) or named
    except OSError:
        return None
    finally:
        os.close(fd)


def holders(folder: RunFolder) -> set[int]:
    """The processes that hold the lock, by the kernel and whoever signed, as far as they can be seen."""
    try:
        return locks.holders(os.lstat(folder.journal))
    except OSError:
        return set()


def _unsigned(folder: RunFolder, fd: int) -> Holder | None:
    """Who holds the journal that is open as `fd` although another process signed; None when that cannot be seen."""
    from raymond.redaction import Secrets  # needed when somebody is in the way
    from raymond.system import process_tree

    found, pid = sorted(locks.holders(os.fstat(fd))), _at_door(folder)
    if pid in found:
        return Holder(pid, os.uname().nodename, start_time(pid), folder.socket)
    for pid in found:
        command = Secrets.of(os.environ).clean(process_tree.command(pid)).replace("\n", " ")[:_SHOWN_CHARACTERS]
        return ForeignHolder(pid, os.uname().nodename, start_time(pid), command=command)
    return None


def _at_door(folder: RunFolder) -> int:
    """The process that takes requests at the socket: a driver does, also when a step wrote over its name."""
    from raymond.system import sockets

    try:
        with contextlib.closing(sockets.connect(folder.socket, LOOKED_AT)) as connection:
            return sockets.peer(connection)[0]
    except OSError:
        return 0


def signed(folder: RunFolder) -> Holder:
    """Who signed as the holder, whether or not the lock is still held."""
    try:
        return msgspec.json.decode(files.contents(folder.driver, 4096), type=Holder)
    except (OSError, msgspec.DecodeError, RecursionError):
        return Holder()


def _write(folder: RunFolder, holder: Holder) -> None:
    """Any step can put a folder where the name belongs: it is moved aside, whatever is in it."""
    name = msgspec.json.encode(holder)
    try:
        files.replace(folder.driver, name, run=folder.id)
    except JournalError:
        if not folders.is_folder(folder.driver):
            raise
        aside = f"{folder.driver}.{os.urandom(4).hex()}.aside"
        files.guard(folder.driver, lambda: os.rename(folder.driver, aside), run=folder.id)
        files.replace(folder.driver, name, run=folder.id)


def _busy(folder: RunFolder) -> RunBusy:
    found = holder(folder)
    if isinstance(found, ForeignHolder):
        told, hint = found.told(folder.id), found.way_out(folder.id)
        return RunBusy(told, path=folder.journal, pid=found.pid, host=found.host, hint=hint)
    return _driven_by_another(folder, found or signed(folder))


def _driven_by_another(folder: RunFolder, holder: Holder) -> RunBusy:
    """One that takes requests drives the run; another one that has signed may only write something down."""
    who, does = f"process {holder.pid}" if holder.pid else "an unknown process", "holds the lock of"
    kind = RunDriven if holder.socket else RunBusy
    if holder.socket:
        does, hint = "drives", f"`raymond stop {folder.id}` stops it; `raymond status {folder.id}` shows what it does"
    elif holder.pid:
        hint = f"try again in a moment; if it hangs: kill {holder.pid}"
    else:
        hint = f"try again in a moment; if it drives the run, `raymond stop {folder.id}` stops it"
    return kind(
        f"{who} {does} {folder.id}" + (f" on {holder.host}" if _is_elsewhere(holder) else ""),
        path=folder.journal,
        pid=holder.pid,
        host=holder.host,
        hint=hint,
    )


def _cannot_lock(folder: RunFolder, error: OSError, has_flag: bool) -> JournalError:
    force = f"make sure that no other process drives {folder.id}, then use --force"
    return JournalError(
        f"this file system cannot lock {folder.journal}: {(error.strerror or str(error)).lower()}",
        path=folder.journal,
        hint=force if has_flag else f"copy {folder.home.path} to one that can, and name it with RAYMOND_HOME",
    )


def _is_elsewhere(holder: Holder) -> bool:
    return holder.host not in ("", os.uname().nodename)


# Which run a process drives


def driven_by(pid: int) -> RunFolder | None:
    """The run that process `pid` drives, wherever it is kept; None when it drives none. OSError: nobody can tell."""
    from raymond.system import process_tree  # no look at a run needs it

    for number, path in process_tree.open_files(pid).items():
        if path.startswith("/") and not path.startswith("/dev/") and _is_driven(pid, number, path):
            return _folder_of(path)
    return None


def _is_driven(pid: int, number: str, path: str) -> bool:
    """Whether a descriptor holds the lock of a journal."""
    try:
        if locks.is_shown(pid, number):
            return _is_path_of_journal(path) or _begins_like_journal(pid, number)
        return _is_path_of_journal(path) and _may_be_locked(path)
    except OSError as error:
        if errors.is_passing_fault(error):
            raise
        return False  # closed by now


def _begins_like_journal(pid: int, number: str) -> bool:
    """Whether it begins like a journal: a step can give that another name for a moment."""
    fd = os.open(f"/proc/{pid}/fd/{number}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(fd, 16).startswith(_BEGINNINGS)
    finally:
        os.close(fd)


def _may_be_locked(path: str) -> bool:
    """Whether a lock may be held that the kernel does not show: it shows none, or the file system has none."""
    fd = files.private(path, os.O_RDONLY)
    try:
        return LOCKS.is_taken(fd) and not locks.are_shown()
    except OSError:
        return True
    finally:
        os.close(fd)


def _is_path_of_journal(path: str) -> bool:
    """Whether it is where journals are: HOME/projects/PROJECT/runs/ID/journal.jsonl."""
    *above, runs, id, name = ("", "", "", *path.split("/"))
    return name == JOURNAL and runs == "runs" and above[-2] == "projects" and bool(ID_FORM.fullmatch(id))


def _folder_of(path: str) -> RunFolder:
    """The folder of a run, from the path of its journal."""
    above = os.path.dirname(path)
    parts = above.split("/")
    return RunFolder(home.Home("/".join(parts[:-4])), above, parts[-1])


# Until when it was driven


class Heartbeat:
    """The time of a file in the folder of a run."""

    def __init__(self, path: str) -> None:
        self._path = path

    def keep(self) -> None:
        """The run is driven now; nothing depends on this but the limit of its time."""
        with contextlib.suppress(OSError):
            fd = private(self._path, os.O_WRONLY | os.O_CREAT)
            os.utime(fd)
            os.close(fd)

    def after(self, time: float, now: float) -> float:
        """For how many seconds after `time` the run was still driven, up to `now`."""
        try:
            last = os.lstat(self._path).st_mtime
        except OSError:
            return 0.0
        return round(max(0.0, min(last, now) - time), 3)
