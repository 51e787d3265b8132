"""Which processes a process comes from, and what is seen of them."""

import contextlib
import os
import pty
import resource
import subprocess
import sys

import pytest

from raymond.system import ancestry
from running import until

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="there is no /proc")


def test_a_process_comes_from_its_parents_up_to_the_first() -> None:
    line = ancestry.line(os.getpid())
    assert [line[0].pid, line[1].pid] == [os.getpid(), os.getppid()]
    assert line[-1].parent == 0


def test_a_process_that_is_gone_comes_from_nowhere() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    with pytest.raises(ancestry.Unseen):
        ancestry.line(gone.pid)
    assert (ancestry.command(gone.pid), ancestry.variable(gone.pid, "PATH"), ancestry.open_files(gone.pid)) == (
        "",
        "",
        [],
    )


def test_what_a_process_was_started_with_is_seen() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, env={"MARK": "a=b", "OTHER": "c"}) as child:
        until(lambda: ancestry.command(child.pid) == "cat", "the program")
        assert (ancestry.variable(child.pid, "MARK"), ancestry.variable(child.pid, "MAR")) == ("a=b", "")


def seen(argv: list[str], *, stdin: int | None = None) -> str:
    """The terminal of a command that is started in a new one, as it is seen from here."""
    pid, screen = pty.fork()
    if not pid:
        if stdin is not None:
            os.dup2(stdin, 0)
        os.execv(sys.executable, [sys.executable, "-c", *argv])
    assert os.read(screen, 100)
    found = ancestry.look(pid)
    assert found
    terminal = ancestry.terminal(found)
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


_CHAIN = """
import os, sys, time
for _ in range(int(sys.argv[1])):
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        os._exit(0)
print(os.getpid(), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(("deep", "seen"), [(20, True), (1001, False)])
def test_a_line_is_seen_whole_or_not_at_all(deep: int, seen: bool) -> None:
    argv = [sys.executable, "-SIc", _CHAIN, str(deep)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout and first.stdin
        last = int(first.stdout.readline())
        if seen:
            assert [process.pid for process in ancestry.line(last)][deep : deep + 2] == [first.pid, os.getpid()]
        else:
            with pytest.raises(ancestry.Unseen):
                ancestry.line(last)
        first.stdin.close()


def test_a_line_whose_processes_end_while_it_is_walked_is_still_whole() -> None:
    """Every process of a chain ends as soon as it has a child: the last one always comes from here in the end."""
    chain = "import os, sys\nfor _ in range(3000):\n    if os.fork(): os._exit(0)\n    print(os.getpid(), flush=True)\n"
    ancestry.keep_orphans(True)
    with subprocess.Popen([sys.executable, "-SIc", chain], stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout
        for said in first.stdout:
            with contextlib.suppress(ancestry.Unseen):
                assert os.getpid() in [process.pid for process in ancestry.line(int(said))]
    ancestry.keep_orphans(False)
    ancestry.reap_orphans(set())


def test_a_lack_of_descriptors_is_not_taken_for_an_answer() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = [os.open(os.devnull, os.O_RDONLY)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (held[0] + 1, hard))
    try:
        for looked in (ancestry.line, ancestry.open_files, lambda pid: ancestry.variable(pid, "PATH")):
            with pytest.raises(OSError):
                looked(os.getpid())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        os.close(held[0])
