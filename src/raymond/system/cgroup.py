"""A cgroup of our own: the kernel keeps in it whatever this process starts, and nothing there can get out by itself.

Entering one takes the kernel about 10 ms, however many processes enter together. One is made only where that is for us
to do: where systemd has handed our cgroup over, or in a container, which has nobody else to manage it.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import TypeAlias

from raymond.errors import JournalError
from raymond.system import files, process_tree
from raymond.system.processes import GRACE, boot

ASIDE = "RAYMOND_CGROUP"
"""Names the cgroup we came from, for those of our children that are not to be ended with the others."""
_ENTERED_WITHIN = 60.0
"""Seconds after which an empty one is not about to be entered."""
_FREEZES_WITHIN = 0.2
"""Seconds that we wait for processes to stand still: one that waits for a disk does not for long."""
_MOST = 1 << 20
"""Bytes of the file that are read."""
_MANY = 1 << 16
"""Cgroups in one that are looked at: a step could make more all the time."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_DIGITS = 19
_ROUNDS = 20
"""How often we look for processes that were started while those who started them were being moved."""

Made: TypeAlias = tuple[int, str]
"""The session of whoever made a cgroup, in which no step is, and the folder of it."""


class Cgroups:
    """The cgroups that the drivers of a run have made, by a file that tells of them when a driver is dead."""

    def __init__(self, path: str, name: str = "") -> None:
        self._path = path
        self._name = f"{name}-" if name else ""
        self._came_from = ""
        self._own = ""
        self._has_tried = False

    def enter(self, name: str, below: Callable[[], Collection[int]]) -> None:
        """Move this process and those `below` it into a new cgroup; once, and only where that is possible."""
        if self._has_tried:
            return
        self._has_tried = True
        came_from = delegated()
        if not came_from:
            return
        path = f"{came_from}/raymond-{name}-{os.urandom(4).hex()}"
        with contextlib.suppress(OSError, JournalError, ValueError):
            # Before it is there: whoever comes after us has to know of it.
            self._write([*self._read(), (os.getsid(0), path)])
            os.mkdir(path)
            _put(path, 0)
            self._came_from = os.environ[ASIDE] = came_from
            self._own = path
            _put_all(path, below)
            _sweep(came_from)
        if not self._came_from:
            self.tidy()

    def leave(self, spare: Collection[int] = ()) -> None:
        """Move this process back, kill what is left there, remove what is empty.

        What is one of `spare` or comes from one goes on.
        """
        if self._came_from:
            os.environ.pop(ASIDE, None)
            with contextlib.suppress(OSError):
                _put(self._came_from, 0)
                self._kill_all(spare)
        self.tidy()

    def left(self) -> set[int]:
        """The processes in those that we are not in ourselves."""
        return {pid for made in self._others() for pid in _steps(*made)}

    @contextlib.contextmanager
    def still(self) -> Iterator[None]:
        """Let nothing happen in those that we are not in ourselves: whoever is seen there is there."""
        with contextlib.ExitStack() as until:
            for _, path in self._others():
                until.enter_context(frozen(path))
            yield

    def _others(self) -> list[Made]:
        """Those that we are not in ourselves."""
        every = self._read()
        here = f"{current()}/" if every else ""
        return [made for made in every if not here.startswith(f"{made[1]}/")]

    def _kill_all(self, spare: Collection[int]) -> None:
        """Kill the steps in our own, which we have left."""
        session, until = os.getsid(0), time.monotonic() + GRACE
        if "populated 1" not in _contents(f"{self._own}/cgroup.events"):
            return
        with frozen(self._own):
            known = process_tree.relatives(spare) if spare else set[int]()
            while (left := _steps(session, self._own) - known) and time.monotonic() < until:
                for pid in left:
                    with contextlib.suppress(OSError):
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.001)

    def tidy(self) -> None:
        """Remove those that are empty."""
        every = self._read()
        kept = [made for made in every if not _remove(made[1])]
        with contextlib.suppress(OSError, JournalError):
            if kept and len(kept) < len(every):
                self._write(kept)
            elif not kept:
                os.unlink(self._path)

    def _write(self, every: list[Made]) -> None:
        since = boot()
        files.replace(self._path, "".join(f"{since} {session} {path}\n" for session, path in every).encode())

    def _read(self) -> list[Made]:
        try:
            lines = files.contents(self._path, _MOST).decode("utf-8", "replace").splitlines()
        except OSError:
            return []
        since, top, words = boot(), _top(), [line.split(" ", 2) for line in lines]
        whole = [one for one in words if len(one) == 3 and one[0] == since and _is_number(one[1])]
        return [(int(session), path) for _, session, path in whole if self._is_own(path, top)]

    def _is_own(self, path: str, top: str) -> bool:
        """Whether a cgroup may be one of the run: every step can write what we read."""
        is_named = _is_ours(path) and os.path.basename(path).startswith(f"raymond-{self._name}")
        return is_named and bool(top) and path.startswith(f"{top}/") and _is_straight(path)


def _is_straight(path: str) -> bool:
    """Whether a path takes no way round, and can be one at all. Where cgroups are, there are no links."""
    with contextlib.suppress(ValueError):
        return b"\0" not in os.fsencode(path) and os.path.normpath(path) == path
    return False


def _is_number(word: str) -> bool:
    return word.isdecimal() and len(word) <= _DIGITS


def _is_ours(path: str) -> bool:
    begin, _, end = os.path.basename(path).rpartition("-")
    return begin.startswith("raymond-") and len(end) == 8 and os.path.isabs(path)


def delegated() -> str:
    """The folder of our cgroup if we may divide it; else nothing."""
    ours, top = current(), _top()
    outer = ours
    while _is_ours(outer):
        outer = os.path.dirname(outer)  # of the run whose step we are
    if not ours or not (_is_handed_over(outer) or (outer == top and not _has_systemd())):
        return ""
    if _contents(f"{ours}/cgroup.subtree_control").strip():
        return ""  # whoever enabled controllers shares out resources: one more cgroup would get a share
    return ours if all(os.access(path, os.W_OK) for path in (ours, f"{ours}/cgroup.procs")) else ""


def current() -> str:
    """The folder of the cgroup that this process is in; empty where there is no version 2."""
    for line in _contents("/proc/self/cgroup").splitlines():
        path = line.removeprefix("0::")
        # Outside of our namespace, or removed.
        if path != line and ".." not in path and not path.endswith(" (deleted)"):
            return f"{_top()}{path}".rstrip("/") if _top() else ""
    return ""


def members(path: str) -> Iterator[int]:
    """The processes in a cgroup and those below it."""
    for folder in _each(path):
        # 0 stands for all those that our PID namespace does not show.
        yield from filter(None, map(int, filter(_is_number, _contents("cgroup.procs", folder).split())))


def _steps(session: int, path: str) -> set[int]:
    """The processes in a cgroup except those in the session of whoever made it."""
    return {pid for pid in members(path) if (found := process_tree.look(pid)) and found.session != session}


@contextlib.contextmanager
def frozen(path: str) -> Iterator[None]:
    """Let no process in a cgroup do anything, as far as the kernel can; they can be killed."""
    try:
        _freeze(path, b"1")
        until = time.monotonic() + _FREEZES_WITHIN
        while "frozen 0" in _contents(f"{path}/cgroup.events") and time.monotonic() < until:
            time.sleep(0.0005)
        yield
    finally:
        _freeze(path, b"0")


def _freeze(path: str, how: bytes) -> None:
    with contextlib.suppress(OSError):
        fd = os.open(f"{path}/cgroup.freeze", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, how)
        finally:
            os.close(fd)


def _top() -> str:
    """Where all cgroups of our namespace are; empty where version 2 is not mounted."""
    for line in _contents("/proc/self/mountinfo").splitlines():
        about, _, kind = line.partition(" - ")
        words = about.split()
        if kind.startswith("cgroup2 ") and words[3] == "/" and "\\" not in words[4]:
            return words[4]
    return ""


def _is_handed_over(path: str) -> bool:
    """Whether systemd leaves this cgroup to those in it (Delegate=yes).

    One further up says nothing: that of a whole user session is handed over to the systemd of that user.
    """
    for name in ("user.delegate", "trusted.delegate"):
        with contextlib.suppress(OSError):
            if os.getxattr(path, name) == b"1":
                return True
    return False


def _has_systemd() -> bool:
    """Whether systemd manages all cgroups here, as far as we can tell."""
    return os.path.isdir("/run/systemd/system") or _contents("/proc/1/comm").strip() in ("", "systemd")


def _put(path: str, pid: int) -> None:
    """Move a process; 0 is this one."""
    fd = os.open(f"{path}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, b"%d" % pid)
    finally:
        os.close(fd)


def _put_all(path: str, pids: Callable[[], Collection[int]]) -> None:
    """Move processes, and what they have started until they were moved."""
    tried = set[int]()
    for _ in range(_ROUNDS):
        known = tried | set(members(path))
        new = [pid for pid in pids() if pid not in known]
        if not new:
            break
        for pid in new:
            with contextlib.suppress(OSError):
                _put(path, pid)
        tried.update(new)


def _sweep(path: str) -> None:
    """Remove what killed drivers of runs that nobody resumed have left in a cgroup."""
    before = time.time() - _ENTERED_WITHIN
    with os.scandir(path) as found:
        for one in found:
            if _is_ours(one.path) and one.stat().st_mtime < before:
                _remove(one.path)


def _remove(path: str) -> bool:
    """Remove a cgroup with those in it, if no process is there; whether it is gone."""
    for folder in _each(path):
        for name in _names(folder):
            with contextlib.suppress(OSError):
                os.rmdir(name, dir_fd=folder)
    with contextlib.suppress(OSError):
        os.rmdir(path)
    return not os.path.lexists(path)


def _each(path: str) -> Iterator[int]:
    """A cgroup and those in it as open folders, each after what is in it; none that is gone by then.

    Only one is open at a time, and found from the one before: steps can nest them so deep that no path leads there.
    """
    with contextlib.suppress(OSError):
        here = os.open(path, _FOLDER)
        todo = [_names(here)]
        try:
            for _ in range(_MANY):
                while todo[-1] and len(todo) < _MANY:
                    with contextlib.suppress(OSError):
                        here = _moved(here, todo[-1].pop())
                        todo.append(_names(here))
                yield here
                todo.pop()
                if not todo:
                    break
                here = _moved(here, "..")
        finally:
            os.close(here)


def _moved(here: int, name: str) -> int:
    """The folder `name` of an open one, which is closed then."""
    there = os.open(name, _FOLDER, dir_fd=here)
    os.close(here)
    return there


def _names(folder: int) -> list[str]:
    """The folders in an open one; none if it is gone."""
    try:
        with os.scandir(folder) as found:
            return [one.name for one in found if one.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _contents(path: str, inside: int | None = None) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", opener=partial(os.open, dir_fd=inside)) as file:
            return file.read()
    except OSError:
        return ""
