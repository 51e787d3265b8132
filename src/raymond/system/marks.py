"""Find and end the processes that carry a run's mark.

Every child carries `RAYMOND_STEP`, a path of marks: a Raymond started inside a step of another appends to it.
"""

import contextlib
import errno
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping

from raymond.system import ancestry, processes
from raymond.system.files import contents, make_private, private
from raymond.system.processes import alive, program, signal_group, start_time, try_reap

MARK = "RAYMOND_STEP"
_SOON = 0.1
"""Seconds within which a process that was killed is gone, most likely."""
_IN_ENVIRON = f"{MARK}=".encode()
_MOST = 1 << 26
"""Bytes of the file of pids that are read."""
_DIGITS = 20
"""No step has a number of so many."""
_NOTING = 'echo "$$ $2" >> "$1" && shift 2 && exec "$@"'
"""The child records its own pid before exec, so a driver killed in between can still find it."""


class Marks:
    """Finds the processes that a run left running."""

    def __init__(self, key: str, pids: str) -> None:
        self._key = key
        self._outer = os.environ.get(MARK, "")
        self._pids = pids
        """The file that records pids when there is no /proc."""

    def of(self, step: int) -> str:
        """The path of marks for a step."""
        mine = f"{self._key}/{step}"
        return f"{self._outer}:{mine}" if self._outer else mine

    def noting(self, argv: list[str], step: int) -> list[str]:
        """`argv`, wrapped so that its pid is recorded if there is no /proc to search."""
        if processes.HAS_PROC:
            return argv
        make_private(os.path.dirname(self._pids))
        # Looked up here, so that a missing program fails the start and not the shell.
        path = program(argv[0])
        if not os.access(path, os.X_OK):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
        return ["/bin/sh", "-c", _NOTING, "sh", self._pids, str(step), path, *argv[1:]]

    def note(self, pid: int, step: int) -> None:
        """Record when a process began, if there is no /proc to search."""
        if not processes.HAS_PROC:
            make_private(os.path.dirname(self._pids))
            with open(self._pids, "a", encoding="ascii", opener=private) as file:
                file.write(f"{pid} {step} {start_time(pid)}\n")

    def leader(self, step: int) -> int:
        """The pid that a step was started as, found by its mark; 0 when it is gone."""
        for pid in self.find(lambda number: number == step):
            with contextlib.suppress(OSError):
                if os.getsid(pid) == pid:
                    return pid
        return 0

    def end(self, *, step: int = 0) -> int:
        """End every process with the mark of the run, or of a step; how many there were."""
        return len(end_all(lambda: self.find(lambda number: step in (0, number))))

    def find(self, only: Callable[[int], bool] | None = None) -> dict[int, int]:
        """The processes with a mark of the run, and its step; of the steps `only` is true of."""
        found = self._search() if processes.HAS_PROC else self._noted()
        return {pid: number for pid, number in found if only is None or only(number)}

    def _search(self) -> Iterator[tuple[int, int]]:
        needle = f"{self._key}/".encode()
        me = os.getpid()
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == me:
                continue
            try:
                environ = ancestry.environment(int(name))
            except OSError:
                continue
            # Most processes are passed over by this one look.
            if needle in environ and (mark := _mark(environ, needle)):
                yield int(name), _number(mark)

    def _noted(self) -> Iterator[tuple[int, int]]:
        try:
            lines = contents(self._pids, _MOST).decode("ascii", "replace").splitlines()
        except OSError:
            return
        found: dict[int, tuple[int, str]] = {}
        for line in lines:
            # A driver that was killed may have written half a line.
            with contextlib.suppress(ValueError):
                pid, step, *began = line.split(" ", 2)
                # Others are groups of processes, or all there are.
                if 1 < int(pid) < 1 << 31 and (began or int(pid) not in found):
                    found[int(pid)] = (int(step), began[0] if began else "")
        for number, (at, when) in found.items():
            if (alive(number, when) if when else _leads(number)) or _group_without_leader(number):
                yield number, at


def end_all(
    find: Callable[[], dict[int, int]],
    still: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext,
) -> dict[int, int]:
    """End every process that `find` gives, and what it gives then; what was found at first.

    While we look, everything is `still`, as far as that is possible.
    """
    with still():
        found = find()
    if not found:
        return found
    began = {pid: start_time(pid) for pid in found}
    for pid in found:
        _kill(pid, signal.SIGTERM)
    _gone_by(began, time.monotonic() + processes.GRACE)
    # One that was found by whom it came from is not found that way again when its parent has ended.
    stubborn = {pid: began[pid] for pid in found if alive(pid, began[pid])}
    until = time.monotonic() + processes.GRACE
    with still():
        while stubborn := stubborn | {pid: start_time(pid) for pid in find()}:
            for pid in stubborn:
                _kill(pid, signal.SIGKILL)
            _gone_by(stubborn, min(until, time.monotonic() + _SOON))
            if time.monotonic() >= until:
                break
            # What they have started meanwhile is found now.
            stubborn = {}
    return found


def _leads(pid: int) -> bool:
    """Whether `pid` leads a session: the fallback when the driver died before it could record the start time."""
    try:
        return os.getsid(pid) == pid
    except OSError:
        return False


def _group_without_leader(pid: int) -> bool:
    """Whether a script left processes in its group: no other group can have this number while they live."""
    try:
        os.killpg(pid, 0)
    except OSError:
        return False
    return not start_time(pid)


def _mark(environ: bytes, begin: bytes) -> bytes:
    """The mark that begins so, in the path of marks alone: any other variable may quote one."""
    paths = (pair[len(_IN_ENVIRON) :] for pair in environ.split(b"\0") if pair.startswith(_IN_ENVIRON))
    return next((mark for path in paths for mark in path.split(b":") if mark.startswith(begin)), b"")


def _number(mark: bytes) -> int:
    """The step in a mark; 0 when none is named."""
    digits = mark.rpartition(b"/")[2]
    return int(digits) if digits.isdigit() and len(digits) < _DIGITS else 0


def _kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
    if not processes.HAS_PROC:
        signal_group(pid, number)


def _gone_by(began: Mapping[int, str], deadline: float) -> None:
    """Wait until all processes that `began` then are gone, or the deadline has passed."""
    while True:
        for pid in began:
            try_reap(pid)
        if not any(alive(*one) or (not processes.HAS_PROC and _group_without_leader(one[0])) for one in began.items()):
            return
        if time.monotonic() >= deadline:
            return
        time.sleep(0.01)
