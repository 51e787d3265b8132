"""Which processes a process comes from, and what can be seen of them from outside: on Linux, by /proc."""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

_LONGEST = 200
"""Characters of a command line that are kept."""
_DEEPEST = 1000
_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER."""


class Process(Struct, frozen=True):
    """A process, as the kernel describes it."""

    pid: int
    parent: int
    group: int
    session: int
    terminal: int
    """The device number of its controlling terminal; 0 for none."""
    foreground: int
    """The process group that has the terminal."""


def look(pid: int) -> Process | None:
    """A process that exists, also one that has ended and was not reaped."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        parent, group, session, terminal, foreground = map(int, fields[1:6])
    except (OSError, ValueError):
        return None
    return Process(pid, parent, group, session, terminal, foreground)


def line(pid: int) -> Iterator[Process]:
    """The process, its parent, and so on up to the first process of the system."""
    for _ in range(_DEEPEST):
        found = look(pid) if pid else None
        if found is None:
            return
        yield found
        pid = found.parent


def terminal(process: Process) -> str:
    """The terminal that a process reads, if it is its own and the process is in the foreground there; else nothing."""
    if not process.terminal or process.foreground != process.group:
        return ""
    with contextlib.suppress(OSError):
        stdin = f"/proc/{process.pid}/fd/0"
        if os.stat(stdin).st_rdev == process.terminal:
            return os.fsencode(os.readlink(stdin)).decode("utf-8", "replace")
    return ""


def command(pid: int) -> str:
    """The beginning of a command line."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            said = file.read(_LONGEST * 4)
    except OSError:
        return ""
    return said.rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")[:_LONGEST]


def variable(pid: int, name: str) -> str:
    """A variable of the environment that a process was started with; empty when it has none."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            pairs = file.read().split(b"\0")
    except OSError:
        return ""
    begin = f"{name}=".encode()
    return next((pair[len(begin) :].decode("utf-8", "replace") for pair in pairs if pair.startswith(begin)), "")


def open_files(pid: int) -> list[str]:
    """The paths of what a process has open."""
    found: list[str] = []
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                found.append(os.readlink(f"/proc/{pid}/fd/{name}"))
    return found


def keep_orphans(keep: bool) -> None:
    """Become the parent of every process below this one whose own parent ends, so that none gets out of this line."""
    with contextlib.suppress(ImportError, AttributeError, OSError):
        # The module ctypes itself takes ten times as long to import, and a run begins in a tenth of a second.
        import _ctypes

        itself: Any = None
        prctl = _ctypes.dlsym(_ctypes.dlopen(itself, 0), "prctl")
        _ctypes.call_function(prctl, (_SUBREAPER, int(keep), 0, 0, 0))


def reap_orphans(spare: set[int]) -> None:
    """Reap orphans that have ended; the children in `spare`, and those of our own session, are for others to reap."""
    ours = os.getsid(0)
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except (ChildProcessError, AttributeError):
            return
        found = look(ended.si_pid) if ended else None
        if found is None or found.pid in spare or found.session == ours:
            return
        with contextlib.suppress(ChildProcessError):
            os.waitpid(found.pid, os.WNOHANG)
