"""Locks on open files, which end with the process that holds them."""

import contextlib
import errno
import fcntl
import os
from struct import Struct
from typing import Protocol

_FLOCK = Struct("hhqqi4x")
"""struct flock: type, whence, start, length, pid."""
_HELD = (errno.EAGAIN, errno.EACCES)


class Locks(Protocol):
    """A kind of lock. OSError from any of these: the file system has no such locks."""

    def take(self, fd: int) -> bool:
        """Lock the file that is open as `fd` for writing; whether nobody else holds it."""

    def release(self, fd: int) -> None:
        """Let go, also of the copies that a child which is just starting may have of the descriptor."""

    def is_taken(self, fd: int) -> bool:
        """Whether somebody else holds the lock of the file that is open as `fd`."""


class OpenFileLocks:
    """Locks of open file descriptions (Linux): they can be looked at without being taken."""

    def take(self, fd: int) -> bool:
        """Lock the whole file."""
        try:
            fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _whole(fcntl.F_WRLCK))
        except OSError as error:
            if error.errno in _HELD:
                return False
            raise
        return True

    def release(self, fd: int) -> None:
        """Unlock it for everybody who shares the descriptor."""
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _whole(fcntl.F_UNLCK))

    def is_taken(self, fd: int) -> bool:
        """Ask what would be in the way."""
        found = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, _whole(fcntl.F_WRLCK))
        return bool(_FLOCK.unpack(found)[0] != fcntl.F_UNLCK)


class FileLocks:
    """flock, where there is nothing better: a look holds the lock for a moment."""

    def take(self, fd: int) -> bool:
        """Lock the file."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self, fd: int) -> None:
        """Unlock it for everybody who shares the descriptor."""
        fcntl.flock(fd, fcntl.LOCK_UN)

    def is_taken(self, fd: int) -> bool:
        """Try to share the lock."""
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(fd, fcntl.LOCK_UN)
        return False


def is_shown(pid: int, number: str) -> bool:
    """Whether process `pid` holds a lock by its descriptor `number`, as the kernel shows it."""
    with open(f"/proc/{pid}/fdinfo/{number}", "rb") as file:
        return b"OFDLCK" in file.read()  # other kinds of lock do not keep anybody from driving


def are_shown() -> bool:
    """Whether this kernel shows locks at all."""
    return os.path.exists("/proc/locks")


def holds(pid: int, file: os.stat_result) -> bool:
    """Whether process `pid` holds the lock of `file`, by the kernel; if that shows none, whether it has it open."""
    shown = are_shown()
    for number in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            if os.path.samestat(os.stat(f"/proc/{pid}/fd/{number}"), file) and (not shown or is_shown(pid, number)):
                return True
    return False


def holders(file: os.stat_result) -> set[int]:
    """The processes that hold the lock of `file`, as far as they can be seen."""
    if not are_shown():
        return set()
    found = set[int]()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if holds(int(name), file):
                found.add(int(name))
    return found


def _whole(kind: int) -> bytes:
    return _FLOCK.pack(kind, os.SEEK_SET, 0, 0, 0)


# Not for anything in the environment to choose: two kinds of lock on one file do not see each other.
LOCKS: Locks = OpenFileLocks() if hasattr(fcntl, "F_OFD_SETLK") and os.uname().sysname == "Linux" else FileLocks()
"""The kind of lock that this system has."""
