"""Which processes a process comes from, and what is seen of them."""

import contextlib
import os
import pty
import resource
import subprocess
import sys
import time

import pytest

from raymond.system import process_tree
from raymond.system.stragglers import Orphans
from running import until

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="there is no /proc")


def test_a_process_comes_from_its_parents_up_to_the_first() -> None:
    line = process_tree.line(os.getpid())
    assert [line[0].pid, line[1].pid] == [os.getpid(), os.getppid()]
    assert line[-1].parent == 0


def test_a_process_that_is_gone_comes_from_nowhere() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    with pytest.raises(process_tree.Unseen):
        process_tree.line(gone.pid)
    assert (
        process_tree.command(gone.pid),
        process_tree.variable(gone.pid, "PATH"),
        process_tree.open_files(gone.pid),
    ) == (
        "",
        "",
        {},
    )


def test_what_a_process_was_started_with_is_seen() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, env={"MARK": "a=b", "OTHER": "c"}) as child:
        until(lambda: process_tree.command(child.pid) == "cat", "the program")
        assert (process_tree.variable(child.pid, "MARK"), process_tree.variable(child.pid, "MAR")) == ("a=b", "")


def seen(argv: list[str], *, stdin: int | None = None) -> str:
    """The terminal of a command that is started in a new one, as it is seen from here."""
    pid, screen = pty.fork()
    if not pid:
        if stdin is not None:
            os.dup2(stdin, 0)
        os.execv(sys.executable, [sys.executable, "-c", *argv])
    assert os.read(screen, 100)
    found = process_tree.look(pid)
    assert found
    terminal = process_tree.terminal(found)
    os.close(screen)
    os.waitpid(pid, 0)
    return terminal


_SAYS = "print('x', flush=True); import time; time.sleep(60)"


def test_a_command_that_reads_its_terminal_in_the_foreground_is_typed() -> None:
    assert seen([_SAYS]).startswith("/dev/")


def test_one_that_reads_something_else_is_not() -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    assert seen([_SAYS], stdin=null) == ""
    os.close(null)


def test_one_in_the_background_is_not() -> None:
    """A child makes itself the foreground, so that its parent is in the background."""
    leave = "import os, signal; signal.signal(signal.SIGTTOU, signal.SIG_IGN); ready = os.pipe(); child = os.fork()\n"
    child = "if not child: os.setpgid(0, 0); os.tcsetpgrp(1, os.getpid()); os.write(ready[1], b'x'); signal.pause()\n"
    assert seen([f"{leave}{child}os.read(ready[0], 1); {_SAYS}"]) == ""


_CHAIN = 'if [ $1 -gt 0 ]; then sh -c "$2" sh $(($1 - 1)) "$2"; else echo $$; read _; fi; true'


@pytest.mark.parametrize(("deep", "seen"), [(20, True), (256, False)])
def test_a_line_is_seen_whole_or_not_at_all(deep: int, seen: bool) -> None:
    argv = ["sh", "-c", _CHAIN, "sh", str(deep), _CHAIN]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout
        assert first.stdin
        last = int(first.stdout.readline())
        if seen:
            assert [process.pid for process in process_tree.line(last)][deep : deep + 2] == [first.pid, os.getpid()]
        else:
            with pytest.raises(process_tree.Unseen, match="too many"):
                process_tree.line(last)
        first.stdin.close()


_FALLING = """
import os, signal, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
parents = []
for _ in range(150):
    parents.append(os.getpid())
    if os.fork():
        while True:
            signal.pause()
print(os.getpid(), flush=True)
for pid in parents[1::2]:
    os.kill(pid, signal.SIGKILL)
    time.sleep(0.0005)
sys.stdin.read()
for pid in parents[::2]:
    os.kill(pid, signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_line_whose_processes_end_while_it_is_walked_is_seen_whole_or_not_at_all() -> None:
    """Every second one of the processes above another ends, from the top, and it always comes from here."""
    orphans = Orphans()
    argv = [sys.executable, "-SIc", _FALLING]
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as first:
        assert first.stdout
        assert first.stdin
        last, line = int(first.stdout.readline()), list[process_tree.Process]()
        while len(line) != 1 + len(process_tree.line(os.getpid())):
            with contextlib.suppress(process_tree.Unseen):
                line = process_tree.line(last)
                assert os.getpid() in [process.pid for process in line]
        first.stdin.close()
    orphans.end()
    orphans.let_go()


def test_a_lack_of_descriptors_is_not_taken_for_an_answer() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = [os.open(os.devnull, os.O_RDONLY)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (held[0] + 1, hard))
    try:
        for looked in (process_tree.line, process_tree.open_files, lambda pid: process_tree.variable(pid, "PATH")):
            with pytest.raises(OSError):
                looked(os.getpid())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        os.close(held[0])


def test_what_a_process_was_started_with_is_seen_while_it_starts_another_program() -> None:
    again = 'import os, sys\nos.execv(sys.executable, [sys.executable, "-SIc", sys.argv[1], sys.argv[1]])'
    child = subprocess.Popen([sys.executable, "-SIc", again, again], env={"MARK": "mine"})
    try:
        until(lambda: process_tree.variable(child.pid, "MARK"), "its start")
        looks = [process_tree.variable(child.pid, "MARK") for _ in range(5000)]
    finally:
        child.kill()
        child.wait()
    assert set(looks) == {"mine"}


def test_a_process_with_no_environment_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, env={}) as child:
        until(lambda: process_tree.command(child.pid) == "cat", "the program")
        monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("it was waited for"))
        assert process_tree.environment(child.pid) == b""
