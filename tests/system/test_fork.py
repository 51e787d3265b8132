"""A copy of this process: it has nothing of ours but what is loaded, and never comes back."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from raymond.system import processes
from running import alive, until

LOOK = """
import json, os, signal, sys
from raymond.system import processes

def look(out):
    found = {
        "cwd": os.getcwd(), "env": dict(os.environ), "path": sys.path, "session": os.getsid(0) == os.getpid(),
        "open": sorted(int(fd) for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")),
        "stdin": os.readlink("/proc/self/fd/0"), "term": signal.getsignal(signal.SIGTERM) == signal.SIG_DFL,
    }
    os.write(out, json.dumps(found).encode())

signal.signal(signal.SIGTERM, lambda *_: None)
sys.path.insert(0, "")
print("not flushed", end="")
kept = open(os.devnull)
reader, writer = os.pipe()
pid = processes.fork(look, {b"PATH": b"/bin"}, sys.argv[1], stdout=writer, stderr=writer)
os.waitpid(pid, 0)
print("", os.read(reader, 1 << 16).decode(), sep="\\n")
"""


def forked(run: Callable[[int], None], cwd: Path) -> tuple[str, int]:
    """What it prints, and its exit code."""
    here = os.getcwd()
    reader, writer = os.pipe()
    try:
        pid = processes.fork(run, {}, str(cwd), stdout=writer, stderr=writer)
    finally:
        os.close(writer)
        os.chdir(here)
    with open(reader, "rb") as file:
        said = file.read().decode()
    return said, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.skipif(not processes.HAS_PROC, reason="there is no /proc")
def test_it_has_nothing_of_the_process_that_it_was_copied_from(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LOOK, str(tmp_path)], capture_output=True, text=True, check=True)
    before, told = done.stdout.splitlines()
    found = json.loads(told)
    assert before == "not flushed", "what we have not written yet is ours to write"
    assert all(os.path.isabs(one) for one in found.pop("path")), "others would lead into the directory of an agent"
    assert found == {
        "cwd": str(tmp_path), "env": {"PATH": "/bin"}, "session": True,
        "open": [0, 1, 2], "stdin": os.devnull, "term": True,
    }  # fmt: skip


def test_what_goes_wrong_there_is_told_and_ends_it(tmp_path: Path) -> None:
    def fails(_: int) -> None:
        raise ValueError("not today")

    assert forked(fails, tmp_path) == ("ValueError: not today\n", 1)
    assert forked(lambda _: sys.exit(7), tmp_path) == ("", 7)


def test_a_directory_that_is_gone_or_leads_elsewhere_is_an_error_here(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("gone", "link"):
        with pytest.raises(OSError):
            forked(lambda _: None, tmp_path / name)


@pytest.mark.skipif(not processes.HAS_PROC, reason="needs prctl")
def test_it_ends_with_the_process_that_it_was_copied_from(tmp_path: Path) -> None:
    code = (
        "import os, signal, time; from raymond.system import processes;"
        "pid = processes.fork(lambda _: time.sleep(600), {}, '/', stdout=1, stderr=1); print(pid, flush=True);"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        pid = int(process.stdout.readline())
    assert process.returncode == -signal.SIGKILL
    until(lambda: not alive(pid), "the copy has ended")


def test_it_leads_a_group_that_can_be_signalled(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    here = os.getcwd()

    def waits(out: int) -> None:
        os.write(out, b"x")
        signal.pause()

    pid = processes.fork(waits, {}, "/", stdout=writer, stderr=writer)
    os.chdir(here)
    os.close(writer)
    assert os.read(reader, 1) == b"x"
    processes.signal_group(pid, signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGTERM
    os.close(reader)
