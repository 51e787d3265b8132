"""Crashed at any system call, or let down by it, a run loses nothing: see crashpoints.py."""

import compileall
import os
import queue
import random
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import raymond
from crash import crashpoints, syscalls
from crash.crash_site import Trial
from crash.crashpoints import Point
from crash.tracing import check_strace

AT_ONCE = 2
POINT = os.environ.get("RAYMOND_POINT", "")
SAMPLE = int(os.environ.get("RAYMOND_CRASHPOINTS", "0"))
SEED = int(os.environ.get("RAYMOND_SEED", "0")) or random.SystemRandom().randrange(1, 1_000_000)
MOST_MISSED = 0.1
_TESTS = Path(__file__).resolve().parent.parent


def call(line: str) -> syscalls.Call:
    """A line of strace."""
    found = syscalls.read([line], "/w")
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ('openat(AT_FDCWD</w/room>, "/w/home/a", O_RDONLY|O_CLOEXEC) = 3</w/home/a>', False),
        ('openat(AT_FDCWD</w/room>, "/w/home/a", O_WRONLY|O_CREAT|O_EXCL, 0600) = 3</w/home/a>', True),
        ('mkdirat(9</w/room>, ".raymond", 0700) = 0', True),
        ('mkdirat(9</w/room>, ".raymond", 0700) = -1 EEXIST (File exists)', False),
        ("fcntl(3</w/home/j>, F_OFD_SETLK, {l_type=F_WRLCK, l_whence=SEEK_SET}) = 0", True),
        ("fcntl(3</w/home/j>, F_DUPFD_CLOEXEC, 0) = 5</w/home/j>", False),
        ("wait4(12, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 12", True),
        ("prlimit64(0, RLIMIT_NOFILE, NULL, {rlim_cur=1024}) = 0", False),
        ("close(3</w/home/a>) = 0", False),
        ("a_call_of_the_future(3) = 0", True),
    ],
)
def test_a_call_counts_as_a_change_unless_it_is_known_to_be_none(line: str, changes: bool) -> None:
    assert call(line).changes is changes


def test_every_call_that_may_change_something_has_a_way_to_fail() -> None:
    assert call("a_call_of_the_future(3) = 0").errors == ["EIO", "ENOMEM"]
    assert "ENOSPC" in call('openat(AT_FDCWD, "/w/home/a", O_WRONLY|O_CREAT, 0600) = 3').errors


def test_a_point_is_known_again_in_another_run() -> None:
    one = call('rename("/w/home/state.json.0a1b2c3d.tmp", "/w/home/state.json") = 0')
    other = call('rename("/w/home/state.json.99999999.tmp", "/w/home/state.json") = ?')
    point = Point("run", one.name, one.about, 1, "KILL")
    assert str(point) == "run:rename:home/state.json.X.tmp,home/state.json:1:KILL"
    assert point.is_at(other)
    assert (one.struck, other.struck) == (False, True)


# --- all of them


def alone() -> list[str]:
    """Before a command: what gives it process numbers of its own, where that is allowed."""
    own = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    for argv in (own, [*own, "--user", "--map-root-user"]):
        if shutil.which("unshare") and not subprocess.run([*argv, "true"], check=False, capture_output=True).returncode:
            return argv
    return []


class Worker:
    """A crash site in a process of its own."""

    def __init__(self, folder: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(_TESTS)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self.process = subprocess.Popen(
            [*alone(), sys.executable, "-m", "crash.crash_site", str(folder)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.points = msgspec.json.decode(self._hear(), type=list[Point])

    def _hear(self) -> str:
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, "the crash site is gone"
        return line

    def try_out(self, point: Point) -> Trial:
        """What comes of a point."""
        assert self.process.stdin
        print(msgspec.json.encode(point).decode(), file=self.process.stdin, flush=True)
        return msgspec.json.decode(self._hear(), type=Trial)

    def close(self) -> None:
        """Nothing more is asked."""
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def tried(workers: list[Worker], found: list[Point]) -> Iterator[Trial]:
    """What comes of all of them, as many at once as there are workers."""
    left: queue.SimpleQueue[Point] = queue.SimpleQueue()
    done: queue.SimpleQueue[Trial | BaseException] = queue.SimpleQueue()
    for point in found:
        left.put(point)

    def work(worker: Worker) -> None:
        try:
            while True:
                done.put(worker.try_out(left.get_nowait()))
        except queue.Empty:
            pass
        except BaseException as error:
            done.put(error)

    for worker in workers:
        threading.Thread(target=work, args=(worker,), daemon=True).start()
    for _ in found:
        trial = done.get()
        if isinstance(trial, BaseException):
            raise trial
        yield trial


@pytest.mark.crashpoints
@pytest.mark.timeout(7200)
def test_crashed_at_any_call_or_let_down_by_it_nothing_is_lost(tmp_path: Path) -> None:
    check_strace()
    compileall.compile_dir(os.path.dirname(raymond.__file__), quiet=1)  # else only the record has Python doing it
    workers = [Worker(tmp_path / f"site{number}") for number in range(1 if POINT else AT_ONCE)]
    try:
        chosen = choose(workers[0].points)
        report = Report(len(chosen))
        for trial in tried(workers, chosen):
            report.add(trial)
    finally:
        for worker in workers:
            worker.close()
    report.end()
    assert not report.findings
    assert len(report.missed) <= max(1, MOST_MISSED * len(chosen)), "too many points were not met"


def choose(found: list[Point]) -> list[Point]:
    """The points that are asked for."""
    if POINT:
        chosen = [point for point in found if re.fullmatch(POINT, str(point)) or str(point) == POINT]
        assert chosen, f"the record has no point {POINT}"
        return chosen
    return crashpoints.sample(found, SAMPLE, SEED)


class Report:
    """Tells how it goes, and what came out."""

    def __init__(self, number: int) -> None:
        self.findings: list[Trial] = []
        self.missed: list[Point] = []
        self._number = number
        self._crashes = self._errors = 0
        self._began = time.monotonic()
        again = f"; again: make crashpoints SAMPLE={SAMPLE} SEED={SEED}" if SAMPLE else ""
        print(f"\n{number} points, {AT_ONCE} at a time{again}", flush=True)

    def add(self, trial: Trial) -> None:
        """Something came of a point."""
        if trial.finding:
            self.findings.append(trial)
            print(f"FINDING make crashpoints POINT='{trial.point}'\n{trial.finding}", flush=True)
        elif not trial.met:
            self.missed.append(trial.point)
        elif trial.point.kills:
            self._crashes += 1
        else:
            self._errors += 1
        if self._tried % 50 == 0:
            print(f"{self._tried} of {self._number} after {time.monotonic() - self._began:.0f} s", flush=True)

    @property
    def _tried(self) -> int:
        return self._crashes + self._errors + len(self.findings) + len(self.missed)

    def end(self) -> None:
        """All of them were tried."""
        for point in self.missed:
            print(f"not met: {point}")
        print(
            f"{self._tried} points in {time.monotonic() - self._began:.0f} s: {self._crashes} crashes and "
            f"{self._errors} errors survived, {len(self.missed)} not met, {len(self.findings)} findings",
            flush=True,
        )
