"""The lock of a run: held while a process drives it."""

import contextlib
import fcntl
import os
import time

import msgspec
from msgspec import Struct

from raymond.errors import JournalError, RunBusy
from raymond.system.files import trouble
from raymond.system.processes import start_time

LOOKED_AT = 0.5
"""Seconds to wait for an unsigned lock: somebody may only be checking it, or be about to sign it."""


class Holder(Struct):
    """Who holds a lock."""

    pid: int = 0
    started: str = ""
    """Start time of the process, as the kernel gives it."""
    host: str = ""


class Lock:
    """A lock file held by this process until `release`."""

    def __init__(self, path: str, fd: int, run: str = "") -> None:
        self.path = path
        self._run = run
        self._fd = fd
        self.sign()

    def sign(self) -> None:
        """Record this process as the holder; call it again after a fork."""
        holder = Holder(os.getpid(), start_time(os.getpid()), os.uname().nodename)
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, msgspec.json.encode(holder), 0)
        except OSError as error:
            self.release()
            raise trouble(self.path, error, run=self._run) from None

    def release(self) -> None:
        """Let others drive the run."""
        if self._fd >= 0:
            os.ftruncate(self._fd, 0)
            # Closing is not enough: a child that is just starting may hold a copy of the descriptor a moment longer.
            with contextlib.suppress(OSError):
                fcntl.flock(self._fd, fcntl.LOCK_UN)
            os.close(self._fd)
            self._fd = -1


def take(path: str, *, run: str = "", force: bool = False) -> Lock:
    """Hold the lock of the run with the id `run`, or raise RunBusy with its holder."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise trouble(path, error, run=run) from None
    try:
        _hold(fd)
    except BlockingIOError:
        holder = _read(fd)
        os.close(fd)
        raise RunBusy(
            f"process {holder.pid or '?'} drives this run" + _elsewhere(holder),
            path=path,
            pid=holder.pid,
            host=holder.host,
            hint=f"`raymond stop {run}` stops it; `raymond status {run}` shows what it does",
        ) from None
    except OSError as error:
        os.close(fd)
        if force:
            return Lock(path, os.open(path, os.O_RDWR | os.O_CLOEXEC), run)
        raise JournalError(
            f"this file system cannot lock {path}: {(error.strerror or str(error)).lower()}",
            path=path,
            hint="make sure that no other process drives this run, then use --force",
        ) from None
    holder = _read(fd)
    if holder.pid and holder.host not in ("", os.uname().nodename) and not force:
        os.close(fd)
        raise RunBusy(
            f"process {holder.pid} on {holder.host} locked this run and did not release it",
            path=path,
            pid=holder.pid,
            host=holder.host,
            hint=f"make sure that it is gone from {holder.host}, then use --force",
        )
    return Lock(path, fd, run)


def _hold(fd: int) -> None:
    """Lock it; a process that only checks the lock holds it for a moment, unsigned."""
    until = time.monotonic() + LOOKED_AT
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if _read(fd).pid or time.monotonic() > until:
                raise
        time.sleep(0.005)


def holder(path: str) -> Holder | None:
    """Who holds the lock now; None when nobody does."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        return _read(fd)
    except OSError:
        return None
    finally:
        os.close(fd)


def _read(fd: int) -> Holder:
    try:
        return msgspec.json.decode(os.pread(fd, 4096, 0), type=Holder)
    except (OSError, msgspec.DecodeError):
        return Holder()


def _elsewhere(holder: Holder) -> str:
    return f" on {holder.host}" if holder.host not in ("", os.uname().nodename) else ""
