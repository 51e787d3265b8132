"""Processes: started in sessions of their own, watched to their end, found again by their marks."""

import contextlib
import errno
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hopping import hopper
from raymond.system import process_tree, processes
from raymond.system.processes import Poll, Watcher, spawn, start_time
from raymond.system.stragglers import MARK, Marks, end_all
from running import alive, until, zombie

BASE = {b"PATH": os.environb[b"PATH"]}


class Start:
    """Starts processes that end with the test; what they print goes to a pipe."""

    def __init__(self) -> None:
        self._pids: list[int] = []
        self._reader, self._writer = os.pipe()

    def __call__(self, *argv: str, cwd: str = "/", stdin: str = "/dev/null", **env: str) -> int:
        given = BASE | {key.encode(): value.encode() for key, value in env.items()}
        pid = spawn(list(argv), given, cwd, stdin=stdin, stdout=self._writer, stderr=self._writer)
        self._pids.append(pid)
        return pid

    def said(self) -> str:
        return os.read(self._reader, 4096).decode()

    def end(self) -> None:
        os.close(self._reader)
        os.close(self._writer)
        for pid in self._pids:
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.waitpid(pid, 0)


@pytest.fixture
def started() -> Iterator[Start]:
    start = Start()
    here = os.getcwd()
    yield start
    os.chdir(here)
    start.end()


@pytest.fixture(params=["pidfd and /proc", "neither"])
def machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A machine with pidfds and /proc, and one that has to do without."""
    if request.param == "neither":
        monkeypatch.setattr(processes, "HAS_PIDFD", False)
        monkeypatch.setattr(processes, "HAS_PROC", False)
    return str(request.param)


@pytest.fixture
def watched() -> Iterator[tuple[Watcher, Callable[[], object]]]:
    """A watcher, and a function that looks until something was told."""
    poll = Poll()
    watcher = Watcher(poll)

    def look() -> None:
        poll.wait(0.02)
        watcher.poll()

    yield watcher, look
    poll.close()


# Starting


def test_a_process_leads_a_session_of_its_own(started: Start) -> None:
    pid = started("bash", "-c", "echo started; read -t 100 < <(sleep 100)")
    assert started.said() == "started\n"
    assert (os.getsid(pid), os.getpgid(pid)) == (pid, pid)


def test_a_process_gets_its_directory_its_input_and_only_its_environment(started: Start, tmp_path: Path) -> None:
    (tmp_path / "prompt").write_text("what it is asked")
    program = "import os, sys; print(os.getcwd(), sys.stdin.read(), sorted(set(os.environ) - {'LC_CTYPE'}))"
    pid = started(sys.executable, "-c", program, cwd=str(tmp_path), stdin=str(tmp_path / "prompt"), ONE="1")
    os.waitpid(pid, 0)
    assert started.said() == f"{tmp_path} what it is asked ['ONE', 'PATH']\n"


def test_a_process_dies_of_a_broken_pipe_as_usual_although_python_ignores_it(started: Start) -> None:
    os.waitpid(started("grep", "SigIgn", "/proc/self/status"), 0)
    ignored = int(started.said().split()[1], 16)
    assert not ignored & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1))


def test_a_program_that_is_not_there_is_an_error_and_no_process(started: Start) -> None:
    with pytest.raises(FileNotFoundError):
        started("no-such-program-anywhere")


def test_a_directory_that_is_not_there_is_an_error_and_no_process(started: Start) -> None:
    with pytest.raises(FileNotFoundError):
        started("true", cwd="/nowhere/at/all")


# Watching


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", -9), ("kill $$", -15)])
def test_the_end_of_a_child_is_told_with_its_exit_code(
    machine: str, started: Start, watched: tuple[Watcher, Callable[[], object]], script: str, code: int
) -> None:
    watcher, look = watched
    ends: list[int | None] = []
    watcher.watch(started("bash", "-c", script), ends.append)
    until(lambda: look() or ends, "the end of the process")
    assert ends == [code]
    assert not watcher.polls


def test_a_child_that_has_ended_before_it_is_watched_is_told_too(
    machine: str, started: Start, watched: tuple[Watcher, Callable[[], object]]
) -> None:
    watcher, look = watched
    ends: list[int | None] = []
    pid = started("bash", "-c", "exit 3")
    until(lambda: zombie(pid), "the end of the process")
    watcher.watch(pid, ends.append)
    until(lambda: look() or ends, "the end of the process")
    assert ends == [3]


def test_the_end_of_a_process_that_is_no_child_of_ours_is_told_without_a_code(
    machine: str, started: Start, watched: tuple[Watcher, Callable[[], object]]
) -> None:
    watcher, look = watched
    ends: list[int | None] = []
    parent = started("bash", "-c", "(echo $BASHPID; exec sleep 100) & wait")
    grandchild = int(started.said())
    watcher.watch(grandchild, ends.append)
    look()
    assert ends == []
    os.kill(grandchild, signal.SIGKILL)
    until(lambda: look() or ends, "the end of the process")
    assert ends == [None]
    os.waitpid(parent, 0)


def test_a_process_that_is_long_gone_is_told_without_a_code(
    machine: str, started: Start, watched: tuple[Watcher, Callable[[], object]]
) -> None:
    watcher, look = watched
    ends: list[int | None] = []
    pid = started("true")
    os.waitpid(pid, 0)
    watcher.watch(pid, ends.append)
    until(lambda: look() or ends, "the end of the process")
    assert ends == [None]


def test_many_processes_end_and_each_is_told_once(
    machine: str, started: Start, watched: tuple[Watcher, Callable[[], object]]
) -> None:
    watcher, look = watched
    ends: dict[int, list[int | None]] = {}
    for code in range(20):
        watcher.watch(started("bash", "-c", f"exit {code}"), ends.setdefault(code, []).append)
    until(lambda: look() or all(ends.values()), "the end of all processes")
    assert ends == {code: [code] for code in range(20)}


# Is it there


def test_a_process_is_alive_while_it_runs_and_not_as_a_zombie(started: Start) -> None:
    pid = started("sleep", "100")
    began = start_time(pid)
    assert processes.alive(pid, began)
    os.kill(pid, signal.SIGKILL)
    until(lambda: zombie(pid), "the end of the process")
    assert not processes.alive(pid, began)
    os.waitpid(pid, 0)
    assert not processes.alive(pid, began)


def test_a_process_with_the_same_pid_that_began_at_another_time_is_another_one(machine: str, started: Start) -> None:
    pid = started("sleep", "100")
    assert not processes.alive(pid, str(int(start_time(pid)) - 1))
    assert not processes.alive(pid, "")


def test_a_signal_to_what_was_never_started_does_not_hit_ourselves(started: Start) -> None:
    """0 means the own group to the system."""
    program = "from raymond.system.processes import signal_group; signal_group(0, 9); print('still here')"
    os.waitpid(started(sys.executable, "-c", program), 0)
    assert started.said() == "still here\n"


def test_a_signal_to_a_group_that_is_gone_is_no_error(started: Start) -> None:
    pid = started("true")
    os.waitpid(pid, 0)
    processes.signal_group(pid, signal.SIGTERM)


# Marks


@pytest.fixture
def pids(tmp_path: Path) -> Path:
    return tmp_path / "spool" / "r.pids"


@pytest.fixture
def marks(pids: Path) -> Marks:
    return Marks(str(uuid.uuid4()), str(pids))


def marked(marks: Marks, started: Start, step: int, *argv: str) -> int:
    """A process of `step`, that stands where its program begins."""
    pid = started(*(argv or ("sleep", "1000")), **{MARK: marks.of(step)})
    marks.note(pid, step)
    until(lambda: MARK in environ(pid), "the program in its place")
    return pid


def environ(pid: int) -> str:
    return Path(f"/proc/{pid}/environ").read_text()


def test_the_mark_of_a_step_is_the_key_of_the_run_and_the_number(pids: Path) -> None:
    assert Marks("key", str(pids)).of(7) == "key/7"


def test_inside_a_step_of_another_run_the_mark_is_added_to_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MARK, "outer/3")
    assert Marks("inner", str(tmp_path)).of(1) == "outer/3:inner/1"


def test_half_a_line_in_the_list_of_pids_is_passed_over(machine: str, marks: Marks, pids: Path, started: Start) -> None:
    ours = marked(marks, started, 1)
    pids.parent.mkdir(exist_ok=True)
    with pids.open("ab") as file:
        file.write(b"\n12345\nx y z\n\xff\n")
    assert marks.end() == 1
    assert not alive(ours)


def test_everything_of_a_run_is_ended_and_nothing_of_another(
    machine: str, marks: Marks, started: Start, tmp_path: Path
) -> None:
    ours = [marked(marks, started, step) for step in (1, 2, 11)]
    other = Marks(str(uuid.uuid4()), str(tmp_path / "other.pids"))
    theirs = marked(other, started, 1)
    assert marks.end() == 3
    assert not any(alive(pid) for pid in ours)
    assert alive(theirs)
    assert marks.end() == 0


@pytest.mark.skipif(not processes.HAS_PROC, reason="there is no /proc")
@pytest.mark.parametrize(
    "quoting",
    [
        {"NOTE": "I saw {}/1 in the log"},
        {"NOTE": f"x\n{MARK}={{}}/1"},
        {f"OTHER_{MARK}": "{}/1"},
        {MARK: "outer/3x{}/1"},
        {f"{MARK}_S": "{}/1"},
    ],
    ids=["in a text", "after a line", "end of a name", "inside a mark", "begin of a name"],
)
def test_whoever_quotes_a_mark_does_not_carry_it(quoting: dict[str, str], pids: Path, started: Start) -> None:
    key = str(uuid.uuid4())
    quotes = started("sleep", "1000", **{name: text.format(key) for name, text in quoting.items()})
    carries = started("sleep", "1000", **{MARK: f"outer/3:{key}/7:inner/1"})
    until(lambda: all(key in environ(pid) for pid in (quotes, carries)), "the programs in their places")
    assert Marks(key, str(pids)).find() == {carries: 7}


@pytest.mark.skipif(not processes.HAS_PROC, reason="there is no /proc")
@pytest.mark.parametrize("number", ["", "x", "1x", "9" * 5000])
def test_a_mark_with_no_number_is_of_no_step(number: str, marks: Marks, started: Start) -> None:
    pid = started("sleep", "1000", **{MARK: marks.of(0)[:-1] + number})
    until(lambda: MARK in environ(pid), "the program in its place")
    assert marks.find() == {pid: 0}


def test_only_one_step_is_ended_where_that_is_asked_for(machine: str, marks: Marks, started: Start) -> None:
    """Step 1 is not step 11."""
    first, eleventh = marked(marks, started, 1), marked(marks, started, 11)
    assert marks.end(step=1) == 1
    assert (alive(first), alive(eleventh)) == (False, True)


def test_the_steps_that_go_on_are_spared(machine: str, marks: Marks, started: Start) -> None:
    first, second = marked(marks, started, 1), marked(marks, started, 2)
    assert end_all(lambda: marks.find(lambda step: step != 2)) == {first: 1}
    assert (alive(first), alive(second)) == (False, True)


def test_what_ignores_the_request_to_end_is_killed(
    machine: str, marks: Marks, started: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "GRACE", 0.1)
    pid = marked(marks, started, 1, "bash", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done")
    assert started.said() == "ready\n"
    marks.end()
    until(lambda: not alive(pid), "the end of the process")


HEADLESS = """
import ctypes, signal, threading, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
threading.Thread(target=time.sleep, args=(1000,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""
"""A program whose first thread ends, which looks as if all of it had."""


@pytest.mark.skipif(not processes.HAS_PROC, reason="there is no /proc")
def test_a_process_whose_first_thread_has_ended_is_found_and_ended(
    marks: Marks, started: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "GRACE", 0.1)
    pid = marked(marks, started, 3, sys.executable, "-SIc", HEADLESS)
    until(lambda: zombie(pid), "the end of its first thread")
    assert processes.alive(pid, start_time(pid))
    assert process_tree.variable(pid, MARK) == marks.of(3)
    assert marks.end() == 1
    assert process_tree.look(pid) is None


@pytest.mark.slow
@pytest.mark.skipif(not processes.HAS_PROC, reason="there is no /proc")
def test_what_keeps_starting_itself_anew_is_killed_where_it_is_slow_enough_to_be_seen(
    marks: Marks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "GRACE", 5.0)
    with hopper(tmp_path / "stop", 0.03, {**os.environ, MARK: marks.of(1)}) as one:
        marks.end()
        assert one.is_gone(1.0)


def test_the_leader_of_a_step_is_found_among_its_processes(machine: str, marks: Marks, started: Start) -> None:
    pid = marked(marks, started, 4, "bash", "-c", "sleep 1000 & echo both; wait")
    assert started.said() == "both\n"
    assert marks.leader(4) == pid
    assert marks.leader(3) == 0


def test_without_a_file_of_pids_there_is_nothing_to_end(marks: Marks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "HAS_PROC", False)
    assert marks.end() == 0


@pytest.mark.parametrize(
    "number", ["0", "1", "-1", str(1 << 31), "1" * 5000], ids=["own", "all", "any", "large", "long"]
)
def test_a_number_in_the_file_that_no_step_can_have_names_nothing(
    number: str, marks: Marks, pids: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "HAS_PROC", False)
    pids.parent.mkdir()
    pids.write_text(f"{number} 1\n{number} 1 {start_time(1)}\n")
    assert marks.find() == {}


def test_a_pid_in_the_file_that_belongs_to_somebody_else_by_now_is_left_alone(
    marks: Marks, pids: Path, started: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "HAS_PROC", False)
    pid = marked(marks, started, 1)
    pids.write_text(f"{pid} 1 {int(start_time(pid)) - 1}\n")
    assert marks.end() == 0
    assert alive(pid)


CROWDED = """
import os, resource
from raymond.system.processes import Poll
from raymond.system.processes import Watcher, spawn

watcher, codes = Watcher(Poll()), []
pid = spawn(["sh", "-c", "exit 7"], dict(os.environb), os.getcwd(), stdout=1, stderr=2)
os.listdir("/")
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
watcher.watch(pid, codes.append)
assert pid in watcher.pids
while not codes:
    watcher.poll()
print(codes, watcher.polls)
"""


def test_the_end_of_a_child_is_told_although_no_descriptor_is_left_to_watch_it() -> None:
    done = subprocess.run([sys.executable, "-c", CROWDED], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("[7] False\n", "")


@pytest.mark.skipif(not processes.HAS_PROC, reason="there is no /proc")
def test_when_a_process_began_is_known_to_a_tick_of_the_kernel() -> None:
    before = time.time()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        after = time.time()
        began = processes.began_at(process.pid)
    tick = 1 / os.sysconf("SC_CLK_TCK")
    assert before - tick - 0.001 <= began <= after + 0.001
    assert processes.began_at(process.pid) == 0.0


@pytest.mark.skipif(not processes.HAS_PROC, reason="there is no /proc")
def test_what_is_started_later_never_seems_to_have_begun_earlier() -> None:
    waits = ["sh", "-c", "exec 3<&0; cat <&3 & echo $!; wait"]
    before = processes.tick()
    with subprocess.Popen(waits, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        child = int(process.stdout.readline())
        for _ in range(1000):
            assert (before, 0) < processes.order(process.pid) < processes.order(child) < (processes.tick() + 1, 0)
    assert processes.order(process.pid) == (0, process.pid)


class Full(Poll):
    """The kernel has no memory to watch one more descriptor."""

    def register(self, fd: int, call: Callable[[int], None]) -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))


def test_the_end_of_a_child_is_told_although_nothing_more_can_be_watched() -> None:
    before = os.listdir("/proc/self/fd")
    watcher, codes = processes.Watcher(Full()), list[int | None]()
    pid = processes.spawn(["sh", "-c", "exit 7"], dict(os.environb), os.getcwd(), stdout=1, stderr=2)
    watcher.watch(pid, codes.append)
    assert (watcher.pids, watcher.polls) == ({pid}, True)
    while not codes:
        watcher.poll()
    assert (codes, watcher.pids) == ([7], set())
    assert len(os.listdir("/proc/self/fd")) == len(before) + 1, "only that of the poll object is left"
