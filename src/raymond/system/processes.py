"""Start, watch and end processes; find those that carry a mark.

Every child is the leader of a session of its own and carries `RAYMOND_STEP`, a path of marks: a Raymond started inside
a step of another appends to it. Where there are no pidfds or no /proc the portable way is taken: SIGCHLD and waitpid
of known pids, and a file of started pids.
"""

import contextlib
import errno
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

from raymond.store.lock import start_time
from raymond.store.project import make_private, private
from raymond.system.polling import Poll

MARK = "RAYMOND_STEP"
GRACE = 2.0
"""Seconds between asking a process to end and ending it."""
DEV_NULL = "/dev/null"
PORTABLE = bool(os.environ.get("RAYMOND_PORTABLE"))
HAS_PIDFD = hasattr(os, "pidfd_open") and not PORTABLE
HAS_PROC = os.path.isdir("/proc/self") and not PORTABLE

_NOTING = 'echo "$$ $2" >> "$1" && shift 2 && exec "$@"'
"""A process that writes down its own pid before it is what it is to be: a driver killed meanwhile loses none."""
_RESET = [signal.SIGPIPE, *([signal.SIGXFSZ] if hasattr(signal, "SIGXFSZ") else [])]


def spawn(
    argv: list[str],
    env: Mapping[bytes, bytes],
    cwd: str,
    *,
    stdin: str = DEV_NULL,
    stdout: int,
    stderr: int,
) -> int:
    """Start `argv` in a session of its own; its pid."""
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, stdin, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, stdout, 1),
        (os.POSIX_SPAWN_DUP2, stderr, 2),
    ]
    # posix_spawn cannot change the directory, so the driver, which has one thread, stands in it for the moment.
    os.chdir(cwd)
    return os.posix_spawn(program(argv[0]), argv, env, file_actions=actions, setsid=True, setsigdef=_RESET)


@lru_cache(maxsize=64)
def program(name: str) -> str:
    """Where a program is; looked up once, not in every folder of PATH for every step."""
    if "/" not in name:
        for folder in os.get_exec_path():
            path = os.path.join(folder, name)
            if os.access(path, os.X_OK) and not os.path.isdir(path):
                return path
    return name


class Watcher:
    """Tells when processes end. Children are reaped; others are only watched."""

    def __init__(self, poll: Poll) -> None:
        self._poll = poll
        self._polled: dict[int, tuple[str, Callable[[int | None], None]]] = {}

    def watch(self, pid: int, ended: Callable[[int | None], None]) -> None:
        """Call `ended` with the exit code when `pid` is gone; with None when it is nobody's child of ours."""
        if HAS_PIDFD:
            try:
                fd = os.pidfd_open(pid)
            except ProcessLookupError:
                ended(_reap(pid))
                return

            def gone(_: int) -> None:
                self._poll.unregister(fd)
                os.close(fd)
                ended(_reap(pid))

            self._poll.register(fd, gone)
        else:
            self._polled[pid] = (start_time(pid), ended)

    def poll(self) -> None:
        """Look at the processes that have no pidfd: after SIGCHLD, and now and then."""
        for pid, (began, ended) in list(self._polled.items()):
            done, code = _try_reap(pid)
            if done or (code is None and not alive(pid, began)):
                del self._polled[pid]
                ended(code)

    @property
    def polls(self) -> bool:
        """Some process has to be looked at now and then."""
        return bool(self._polled)


def _reap(pid: int) -> int | None:
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:
        return None


def _try_reap(pid: int) -> tuple[bool, int | None]:
    try:
        done, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return False, None
    return (True, os.waitstatus_to_exitcode(status)) if done else (False, 0)


def alive(pid: int, began: str) -> bool:
    """The process that began then is still there and not a zombie."""
    if not began or start_time(pid) != began:
        return False
    if not HAS_PROC:
        return True
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def signal_group(pid: int, number: int) -> None:
    """Send a signal to everything in the session's first group."""
    if not pid:
        return  # nothing was started, and 0 would be our own group
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


class Marks:
    """Finds what a run left running."""

    def __init__(self, key: str, pids: str) -> None:
        self._key = key
        self._outer = os.environ.get(MARK, "")
        self._pids = pids
        """Where pids are written down when there is no /proc."""

    def of(self, step: int) -> str:
        """The path of marks for a step."""
        mine = f"{self._key}/{step}"
        return f"{self._outer}:{mine}" if self._outer else mine

    def noting(self, argv: list[str], step: int) -> list[str]:
        """`argv`, started so that its pid is written down, where processes cannot be searched."""
        if HAS_PROC:
            return argv
        make_private(os.path.dirname(self._pids))
        # Looked up here: what is not there is an error of the start, and not of the shell.
        path = program(argv[0])
        if not os.access(path, os.X_OK):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
        return ["/bin/sh", "-c", _NOTING, "sh", self._pids, str(step), path, *argv[1:]]

    def note(self, pid: int, step: int) -> None:
        """Remember when a started process began, where processes cannot be searched."""
        if not HAS_PROC:
            make_private(os.path.dirname(self._pids))
            with open(self._pids, "a", encoding="ascii", opener=private) as file:
                file.write(f"{pid} {step} {start_time(pid)}\n")

    def leader(self, step: int) -> int:
        """The process a step was started as, when only its mark knows it; 0 when it is gone."""
        for pid in self._find(step, set()):
            with contextlib.suppress(OSError):
                if os.getsid(pid) == pid:
                    return pid
        return 0

    def end(self, *, step: int = 0, spare: Iterable[int] = ()) -> int:
        """End every process that carries the run's mark (or a step's), but those of spared steps; how many."""
        kept = set(spare)
        found = self._find(step, kept)
        if not found:
            return 0
        for pid in found:
            _kill(pid, signal.SIGTERM)
        _gone_by(found, time.monotonic() + GRACE)
        stubborn = self._find(step, kept)
        for pid in stubborn:
            _kill(pid, signal.SIGKILL)
        _gone_by(stubborn, time.monotonic() + GRACE)
        return len(found)

    def _find(self, step: int, kept: set[int]) -> list[int]:
        found = self._search() if HAS_PROC else self._noted()
        return [pid for pid, number in found if number not in kept and (not step or number == step)]

    def _search(self) -> Iterator[tuple[int, int]]:
        needle = f"{self._key}/".encode()
        me = os.getpid()
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == me:
                continue
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    environ = file.read()
            except OSError:
                continue
            at = environ.find(needle)
            if at >= 0:
                yield int(name), _number(environ[at + len(needle) : at + len(needle) + 20])

    def _noted(self) -> Iterator[tuple[int, int]]:
        try:
            with open(self._pids, encoding="ascii") as file:
                lines = file.read().splitlines()
        except FileNotFoundError:
            return
        found: dict[int, tuple[int, str]] = {}
        for line in lines:
            pid, step, *began = line.split(" ", 2)
            if began or int(pid) not in found:
                found[int(pid)] = (int(step), began[0] if began else "")
        for number, (at, when) in found.items():
            if (alive(number, when) if when else _leads(number)) or _group_without_leader(number):
                yield number, at


def _leads(pid: int) -> bool:
    """A session has this process at its head; that it began when its driver was killed nobody could note."""
    try:
        return os.getsid(pid) == pid
    except OSError:
        return False


def _group_without_leader(pid: int) -> bool:
    """What a script left in its group: no other group can have this number while it lives."""
    try:
        os.killpg(pid, 0)
    except OSError:
        return False
    return not start_time(pid)


def _number(text: bytes) -> int:
    digits = bytearray()
    for byte in text:
        if not 48 <= byte <= 57:
            break
        digits.append(byte)
    return int(digits or b"0")


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
    if not HAS_PROC:
        signal_group(pid, number)


def _gone_by(pids: list[int], deadline: float) -> None:
    """Wait until all are gone or the time is over."""
    began = {pid: start_time(pid) for pid in pids}
    while True:
        for pid in pids:
            _try_reap(pid)
        if not any(alive(pid, began[pid]) or (not HAS_PROC and _group_without_leader(pid)) for pid in pids):
            return
        if time.monotonic() >= deadline:
            return
        time.sleep(0.01)
