"""Stragglers: processes that steps of a run left running, how they are found, and how they are ended.

Every child carries `RAYMOND_STEP`, a path of marks: a Raymond started inside a step of another appends to it.
A copy of the driver cannot carry one where others see it: it ends with the driver, and what it started carries one.
"""

import contextlib
import errno
import os
import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping

from raymond.errors import JournalError
from raymond.system import files, process_tree, processes
from raymond.system.files import contents, make_private, private
from raymond.system.process_tree import LOOKS
from raymond.system.processes import GRACE, alive, boot, prctl, program, signal_group, start_time, try_reap

_MOST_HELD = 4096
"""Processes that are stopped before they are killed: others may start more all the time."""

_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER."""

_MANY_LINES = 1000
"""Lines that are added before those of processes that have ended are dropped."""
_MOST_OF_A_FILE = 1 << 20
"""Bytes that are read: all steps can write there."""
_LONGEST_NUMBER = 19

MARK = "RAYMOND_STEP"
_SOON = 0.1
"""Seconds within which a process that was killed is gone, most likely."""
_IN_ENVIRON = f"{MARK}=".encode()
_MOST_OF_AN_ENVIRONMENT = 1 << 26
"""Bytes of the file of pids that are read."""
_DIGITS = 20
"""No step has a number of so many."""
_NOTING = 'echo "$$ $2" >> "$1" && shift 2 && exec "$@"'
"""The child records its own pid before exec, so a driver killed in between can still find it."""


# The end of processes that may not want to end: they are asked, then stopped as a whole and killed


class Pursuit:
    """Ends the children of this process that `find` gives, and everything below them."""

    def __init__(self, find: Callable[[], set[int]], grace: float) -> None:
        self._find = find
        self._grace = grace
        """Seconds that one gets to end when it is asked to."""
        self._told = set[int]()
        self._beyond = set[int]()
        """Other users', which we may not end."""

    @property
    def result(self) -> tuple[int, int]:
        """How many were ended, and how many are left."""
        left = set(process_tree.descent(pid for pid in self._find() if not try_reap(pid)[0]))
        return len(self._told - left), len(left)

    def ask(self) -> bool:
        """Ask all to end, and wait for that a while; whether none is left, also none that was started meanwhile."""
        until, quiet = time.monotonic() + self._grace, 0
        # What has ended counts as seen: it may have started something in its place after we looked.
        while quiet < LOOKS:
            found = self._find() - self._beyond
            quiet = 0 if found else quiet + 1
            left = {pid for pid in found if not try_reap(pid)[0]}
            if left and time.monotonic() > until:
                return False
            new = process_tree.relatives(left, sessions=False) - self._told if left else left
            self._send(new, signal.SIGTERM)
            if left:
                time.sleep(0.005)
        return True

    def kill(self, goes_on: Callable[[float], bool]) -> None:
        """Kill all, for as long as new ones are seen, and some time more if one does not go away.

        `goes_on` is asked all the time, with the seconds that it has taken so far.
        """
        began = moved = time.monotonic()
        quiet, before = 0, set[int]()
        while quiet < LOOKS and goes_on(time.monotonic() - began):
            held = self._hold()
            self._send(held, signal.SIGKILL)
            is_new, before = not held <= before, held
            left = {pid for pid in self._find() - self._beyond if not try_reap(pid)[0]}
            quiet = 0 if is_new or left else quiet + 1
            if is_new:
                moved = time.monotonic()
            elif left and time.monotonic() > moved + 5 * self._grace:
                break
            elif left:
                time.sleep(0.001)

    def _hold(self) -> set[int]:
        """Stop all, each before we look for what it has started: the kernel lets it start no more from then on.

        To kill them on the way would take longer: only when one has ended, what it has started becomes our child.
        """
        held = set[int]()
        while len(held) < _MOST_HELD and (new := self._find() - self._beyond - held):
            for pid in process_tree.descent(new):
                held.add(pid)
                self._send({pid}, signal.SIGSTOP)
                if len(held) == _MOST_HELD:
                    break
        return held - self._beyond

    def _send(self, pids: set[int], number: int) -> None:
        self._beyond |= {pid for pid in pids if not _send(pid, number)}
        self._told |= pids


def _send(pid: int, number: int) -> bool:
    """Send a signal; False when we may not. SIGKILL also takes what the process has just started in its group."""
    try:
        os.kill(pid, number)
        if number == signal.SIGKILL:
            os.killpg(pid, number)
    except PermissionError:
        return False
    except ProcessLookupError:
        pass
    return True


# Processes whose parents have ended: this process becomes their parent, so that none gets out of its line


class Orphans:
    """What the processes below this one leave behind, from now on until `let_go`."""

    def __init__(self) -> None:
        self._before = {pid: start_time(pid) for pid in process_tree.children()}
        """They were there before: whoever executed this program started them; with the times when they began."""
        self._session = os.getsid(0)
        self._seen = set[int]()
        prctl(_SUBREAPER, True)

    def reap(self, watched: Collection[int]) -> None:
        """Reap those that have ended; children that are `watched`, or of our own session, are for others to reap."""
        try:
            if os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                return
        except (ChildProcessError, AttributeError):
            return
        for pid in process_tree.children():
            if pid not in watched and (self._was_before(pid) or self._is_outside(pid)) and try_reap(pid)[0]:
                self._before.pop(pid, None)

    def new(self) -> list[int]:
        """The children, orphans or not, that were not there when this was last asked; none that has our session."""
        now = self._outside()
        found = now - self._seen
        self._seen = now
        return sorted(found)

    def below(self) -> list[int]:
        """The children as above, and every process below them; what was started last comes first."""
        return list(process_tree.descent(self._outside()))[::-1]

    def end(
        self,
        spare: Collection[int] = (),
        enclose: Callable[[], None] = lambda: None,
        goes_on: Callable[[float], bool] = lambda _: True,
    ) -> tuple[int, int]:
        """End all but some, with everything below them; how many were ended, and how many are left.

        Those that do not end when they are asked to are killed, after `enclose`; `goes_on` is told how long that takes.
        """
        if not any(self._outside().difference(spare) for _ in range(process_tree.LOOKS)):
            return 0, 0
        pursuit = Pursuit(lambda: self._outside().difference(spare), GRACE)
        if not pursuit.ask():
            enclose()
            pursuit.kill(goes_on)
        return pursuit.result

    def _outside(self) -> set[int]:
        """The children that came after us and have a session of their own."""
        return {pid for pid in process_tree.children() if not self._was_before(pid) and self._is_outside(pid)}

    def _was_before(self, pid: int) -> bool:
        """Whether it is one of those, and not a later process with its number."""
        return pid in self._before and self._before[pid] == start_time(pid)

    def _is_outside(self, pid: int) -> bool:
        try:
            return os.getsid(pid) != self._session
        except OSError:
            return False

    def let_go(self) -> None:
        """Leave orphans to others from now on."""
        prctl(_SUBREAPER, False)


# A file of processes, for whoever has to find them when this process is dead


class PidFile:
    """The processes in a file, each with the step it was started as; 0 when that is not known.

    It is for whoever has to find them when this process is dead. Most of them carry a mark, but a program may start
    without its environment, or write over it.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._added = 0

    def add(self, steps: Mapping[int, int]) -> None:
        """Add processes; one that cannot be written down is only found by its mark."""
        since = boot()
        lines = [f"{pid} {step} {start_time(pid)} {since}\n" for pid, step in steps.items()]
        with contextlib.suppress(OSError), open(self._path, "a", encoding="ascii", opener=files.private) as file:
            file.write("".join(lines))
        self._added += len(lines)
        if self._added >= _MANY_LINES:
            self._added = 0
            kept = "".join(f"{pid} {step} {began} {since}\n" for pid, step, began in self._read())
            with contextlib.suppress(JournalError):
                files.replace(self._path, kept.encode())

    def left(self) -> dict[int, int]:
        """Those that are still there, with their steps: not later processes with their numbers.

        Every step can write to the file: what we come from ourselves is no step, whatever stands there.
        """
        found = {pid: step for pid, step, _ in self._read()}
        above = {process.pid for process in _above()} if found else set[int]()
        return {pid: step for pid, step in found.items() if pid not in above}

    def forget(self) -> None:
        """None of them is left."""
        with contextlib.suppress(OSError):
            os.unlink(self._path)

    def _read(self) -> Iterator[tuple[int, int, str]]:
        try:
            lines = files.contents(self._path, _MOST_OF_A_FILE).decode("ascii", "replace").splitlines()
        except OSError:
            return
        since = boot()
        for words in map(str.split, lines):
            # A driver that was killed may have written half a line.
            if len(words) == 4 and _is_number(words[0]) and _is_number(words[1]) and words[3] == since:
                pid, step, began = int(words[0]), int(words[1]), words[2]
                if alive(pid, began):
                    yield pid, step, began


def _above() -> list[process_tree.Process]:
    """This process, and those that it comes from."""
    with contextlib.suppress(process_tree.Unseen):
        return process_tree.line(os.getpid())
    return []


def _is_number(word: str) -> bool:
    return word.isdecimal() and len(word) <= _LONGEST_NUMBER


# Find and end the processes that carry a run's mark


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
                environ = process_tree.environment(int(name))
            except OSError:
                continue
            # Most processes are passed over by this one look.
            if needle in environ and (mark := _mark(environ, needle)):
                yield int(name), _number(mark)

    def _noted(self) -> Iterator[tuple[int, int]]:
        try:
            lines = contents(self._pids, _MOST_OF_AN_ENVIRONMENT).decode("ascii", "replace").splitlines()
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


# Stragglers: processes that steps of a run left running, for whoever is a step of it and goes on without them


def end_stragglers(key: str, noted: str, only: Callable[[int], bool]) -> None:
    """End what the steps `only` is true of have left running; `key` is the mark of the run."""
    end_all(lambda: _stragglers(key, noted, only))


def _stragglers(key: str, noted: str, only: Callable[[int], bool]) -> dict[int, int]:
    """By their mark, by what the driver saw, and by whom they come from."""
    seen = PidFile(noted).left() if noted else {}
    found = {pid: step for pid, step in seen.items() if step and only(step)}
    found |= Marks(key, "").find(only)
    return dict.fromkeys(process_tree.relatives(found), 0) if found and processes.HAS_PROC else found
