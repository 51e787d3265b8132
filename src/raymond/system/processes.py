"""Start, watch and end processes, and tell when the machine has no room for more.

Every child leads a session of its own. Where pidfds or /proc are missing, portable means are used: SIGCHLD and
waitpid of known pids, and a file of started pids.
"""

import contextlib
import errno
import gc
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from raymond import errors
from raymond.errors import is_passing_fault

_KEPT = 30
"""Descriptors that a driver may yet need for itself."""
_OF_A_STEP = 3
"""Descriptors of a running step: its output, its errors, and its end."""

_EPOLL = hasattr(select, "epoll") and "RAYMOND_PORTABLE" not in os.environ

GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""
DEV_NULL = "/dev/null"
PORTABLE = bool(os.environ.get("RAYMOND_PORTABLE"))
HAS_PIDFD = hasattr(os, "pidfd_open") and not PORTABLE
HAS_PROC = os.path.isdir("/proc/self") and not PORTABLE
_RESET = [signal.SIGPIPE, signal.SIGCHLD, *([signal.SIGXFSZ] if hasattr(signal, "SIGXFSZ") else [])]
"""What children find at its default: Python ignores some, and whoever started us may have ignored SIGCHLD."""
_PDEATHSIG, _GET_DUMPABLE = 1, 3
"""PR_SET_PDEATHSIG, PR_GET_DUMPABLE."""
_TICKS = os.sysconf("SC_CLK_TCK")
"""Of the kernel in a second."""
_THREADS, _BEGAN = 17, 19
"""Where the number of threads and the start time are, from the state on."""
_NOTHING_BLOCKED: list[signal.Signals] = []
_their_umask: int | None = None
"""The umask we were started with, if it would keep us from reading our own files."""


# Faults of the machine: it has no room at the moment, whatever is asked of it


def has_room(files: int = 4) -> bool:
    """Whether this process may open so many more files at the moment."""
    opened: list[int] = []
    try:
        while len(opened) < files:
            opened.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        return not is_passing_fault(error)
    finally:
        for fd in opened:
            os.close(fd)
    return True


def most_steps() -> int:
    """How many steps this process can watch at once with the files it may still open."""
    most = os.sysconf("SC_OPEN_MAX")
    try:
        taken = len(os.listdir("/dev/fd"))
    except OSError:
        taken = 10
    return max(1, (most - taken - _KEPT) // _OF_A_STEP) if most > 0 else 1 << 30


# Wait for file descriptors. The standard selectors do bookkeeping that is too slow for every step


class Poll:
    """Calls back when a descriptor can be read."""

    def __init__(self) -> None:
        self._poll = select.epoll() if _EPOLL else select.poll()
        self._unit = 1.0 if _EPOLL else 1000.0
        self._calls: dict[int, Callable[[int], None]] = {}

    def register(self, fd: int, call: Callable[[int], None]) -> None:
        """Call `call` with `fd` whenever it can be read or is at its end."""
        self._poll.register(fd, select.POLLIN)
        self._calls[fd] = call

    def unregister(self, fd: int) -> None:
        """Forget `fd`; must be called before it is closed."""
        del self._calls[fd]
        self._poll.unregister(fd)

    def wait(self, seconds: float) -> None:
        """Make the calls that are due, at most `seconds` later."""
        calls = self._calls
        for fd, _ in self._poll.poll(seconds * self._unit):
            call = calls.get(fd)  # an earlier call may have unregistered it
            if call:
                call(fd)

    def close(self) -> None:
        """Forget every descriptor and close the poll object."""
        self._calls.clear()
        if isinstance(self._poll, select.epoll):
            self._poll.close()


def spawn(
    argv: list[str],
    env: Mapping[bytes, bytes],
    cwd: str,
    *,
    stdin: str = DEV_NULL,
    stdout: int,
    stderr: int,
) -> int:
    """Start `argv` in a session of its own; returns its pid."""
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, stdin, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, stdout, 1),
        (os.POSIX_SPAWN_DUP2, stderr, 2),
    ]
    _change_to(cwd)
    path = program(argv[0])
    if _their_umask is not None:
        os.umask(_their_umask)
    try:
        return os.posix_spawn(
            path, argv, env, file_actions=actions, setsid=True, setsigdef=_RESET, setsigmask=_NOTHING_BLOCKED
        )
    except OSError as error:
        if error.errno != errno.EBADF:
            raise
        # A descriptor over the limit, which was lowered since it was opened, is not taken for one.
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), argv[0]) from None
    finally:
        if _their_umask is not None:
            os.umask(_their_umask & 0o077)


def fork(
    run: Callable[[int], None],
    env: Mapping[bytes, bytes],
    cwd: str,
    *,
    stdout: int,
    stderr: int,
    ends_by: signal.Signals = signal.SIGTERM,
) -> int:
    """Let a copy of this process `run` in a session of its own, with nothing open but what it prints to; its pid.

    What is loaded here is loaded there, which saves most of the time that a Python of its own would take to start. It
    ends when we do, by that signal, and never comes back from `run`.
    """
    _change_to(cwd)
    us = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        _set_apart(env, stdout, stderr, ends_by)
        if os.getppid() == us:
            run(1)
            code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 1
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.write(2, f"{type(error).__name__}: {error}\n".encode("utf-8", "replace"))
    finally:
        os._exit(code)


def _set_apart(env: Mapping[bytes, bytes], stdout: int, stderr: int, ends_by: signal.Signals) -> None:
    """Make of a copy of this process one that was just started."""
    gc.disable()  # it ends soon
    prctl(_PDEATHSIG, ends_by)
    os.setsid()
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, _NOTHING_BLOCKED)
    if _their_umask is not None:
        os.umask(_their_umask)
    os.environb.clear()
    os.environb.update(env)
    sys.path[:] = filter(os.path.isabs, sys.path)  # others would lead into the agent's directory
    os.dup2(os.open(DEV_NULL, os.O_RDONLY), 0)
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))


def _change_to(cwd: str) -> None:
    """Neither posix_spawn nor a fork can fail in another directory and say so, so the driver changes to it first."""
    os.chdir(cwd)
    if os.getcwd() != cwd:
        # Since it was checked, an agent can have put a link in its place.
        raise NotADirectoryError(errno.ENOTDIR, "it leads elsewhere now", cwd)


def ends_with_us() -> bool:
    """Whether a copy of this process can be made to end when we do."""
    return prctl(_GET_DUMPABLE, 0)


def prctl(option: int, value: int) -> bool:
    """Tell the kernel something about this process; whether there is such a call."""
    with contextlib.suppress(ImportError, AttributeError, OSError):
        # The module ctypes itself takes ten times as long to import, and a run begins in a tenth of a second.
        import _ctypes

        itself: Any = None
        call = _ctypes.dlsym(_ctypes.dlopen(itself, 0), "prctl")
        _ctypes.call_function(call, (option, value, 0, 0, 0))
        return True
    return False


@lru_cache(maxsize=64)
def program(name: str) -> str:
    """The path of a program; cached, because searching PATH for every step is slow."""
    if "/" not in name:
        for folder in filter(os.path.isabs, os.get_exec_path()):  # others would lead into the agent's directory
            path = os.path.join(folder, name)
            if os.access(path, os.X_OK) and not os.path.isdir(path):
                return path
    return name


def withhold_descriptors() -> None:
    """Hand none of the files on that whoever started this process left open in it; 10 us."""
    try:
        found = [int(name) for name in os.listdir("/dev/fd")]
    except (OSError, ValueError):
        found = list(range(3, 256))
    for fd in found:
        if fd > 2:
            with contextlib.suppress(OSError):  # the folder itself is closed by now
                os.set_inheritable(fd, False)


def keep_own_files_usable() -> None:
    """Take what the owner may do out of the umask: our own files must be readable. Children get it as it was."""
    global _their_umask
    found = os.umask(0o077)
    os.umask(found & 0o077)
    if found & 0o700:
        _their_umask = found


def hear_of_children() -> None:
    """Undo that SIGCHLD is ignored, as whoever started us may have left it: exit codes would be lost."""
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


class Watcher:
    """Tells when processes end. Children are reaped; others are only watched."""

    def __init__(self, poll: Poll) -> None:
        self._poll = poll
        self.pids: set[int] = set()
        """The processes that are watched."""
        self._polled: dict[int, tuple[str, Callable[[int | None], None]]] = {}

    def watch(self, pid: int, ended: Callable[[int | None], None]) -> None:
        """Call `ended` with the exit code when `pid` is gone; with None when it is not our child."""
        if not HAS_PIDFD:
            return self._check(pid, ended)
        try:
            self._hear(pid, ended)
        except ProcessLookupError:
            ended(_reap(pid))
        except OSError as error:
            # A step that has begun must not be taken for one that has not: a shorter one has ended by now.
            if not errors.is_passing_fault(error) or not _is_child(pid):
                raise
            self._check(pid, ended)

    def _hear(self, pid: int, ended: Callable[[int | None], None]) -> None:
        """The kernel tells, by a descriptor."""
        fd = os.pidfd_open(pid)

        def gone(_: int) -> None:
            self._poll.unregister(fd)
            os.close(fd)
            self.pids.discard(pid)
            ended(_reap(pid))

        try:
            self._poll.register(fd, gone)
        except OSError:
            os.close(fd)
            raise
        self.pids.add(pid)

    def _check(self, pid: int, ended: Callable[[int | None], None]) -> None:
        """Without a descriptor, `poll` has to look."""
        self._polled[pid] = (start_time(pid), ended)
        self.pids.add(pid)

    def poll(self) -> None:
        """Check the processes that have no pidfd: after SIGCHLD, and regularly."""
        for pid, (began, ended) in list(self._polled.items()):
            done, code = try_reap(pid)
            if done or (code is None and not alive(pid, began)):
                del self._polled[pid]
                self.pids.discard(pid)
                ended(code)

    @property
    def polls(self) -> bool:
        """Whether some process has to be checked regularly."""
        return bool(self._polled)


def _is_child(pid: int) -> bool:
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _reap(pid: int) -> int | None:
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:
        return None


def try_reap(pid: int) -> tuple[bool, int | None]:
    try:
        done, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return False, None
    return (True, os.waitstatus_to_exitcode(status)) if done else (False, 0)


def alive(pid: int, began: str) -> bool:
    """Whether the process that began at `began` is still there and not a zombie."""
    if not began or not HAS_PROC:
        return bool(began) and start_time(pid) == began
    fields = _fields(pid)
    return len(fields) > _BEGAN and fields[_BEGAN].decode() == began and not _has_ended(fields)


def _has_ended(fields: list[bytes]) -> bool:
    """Whether a process is a zombie as a whole: its first thread may end before the others."""
    return fields[0] == b"Z" and int(fields[_THREADS]) < 2


def _fields(pid: int) -> list[bytes]:
    """What the kernel says of a process, from its state on; nothing when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def signal_group(pid: int, number: int) -> None:
    """Send a signal to every process in the group that `pid` leads."""
    if not pid:
        return  # nothing was started, and 0 would be our own group
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def start_time(pid: int) -> str:
    """When a process began, which tells it from a later one with the same pid; empty when it is gone."""
    fields = _fields(pid)
    return fields[_BEGAN].decode() if len(fields) > _BEGAN else _start_time_portable(pid)


def began_at(pid: int) -> float:
    """The time when a process began, by the clock as it is set now, and at most a tick of the kernel too early."""
    ticks = start_time(pid)
    booted = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return booted + int(ticks) / _TICKS if ticks else 0.0


def order(pid: int) -> tuple[int, int]:
    """When a process began, to be compared with others: the tick of the kernel, or 0 when it is gone, and its number.

    Within a tick, the later of two has the higher number. Their times by `began_at` differ by chance there.
    """
    return int(start_time(pid) or 0), pid


def tick() -> int:
    """The tick of the kernel that it is now."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS)


def age(pid: int, told: float) -> float:
    """For how many seconds a process has run, as it was `told` if that can be: others can write what tells it.

    The time in which the machine slept may be counted or not.
    """
    ticks = start_time(pid) if HAS_PROC else ""
    if not ticks:
        return max(0.0, told)
    awake, since_boot = time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME)
    most = since_boot - int(ticks) / _TICKS
    return told if most - (since_boot - awake) - 1.0 <= told <= most + 1.0 else max(0.0, most)


def boot() -> str:
    """Since when this machine has been running: pids and start times of before say nothing."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return "-"


def _start_time_portable(pid: int) -> str:
    if os.path.isdir("/proc/self"):
        return ""
    import subprocess

    done = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return done.stdout.strip()
