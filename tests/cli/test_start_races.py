"""`raymond start` that meets another start, an unset variable or a pipe."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from raymond.machine.events import RunStarted, StepStarted
from running import GO, PATIENCE, Ran, Room, until

SLOW = {"START.sh": f"echo >> ran; {GO}; echo '<result>done</result>'"}
QUICK = {"START.sh": "echo >> ran; echo '<result>done</result>'"}

HOLDER = """
import os, sys
from raymond.system.locks import LOCKS
assert LOCKS.take(os.open(sys.argv[1], os.O_RDWR))
print("held", flush=True)
sys.stdin.read()
"""

MET = """
import os, subprocess, sys
holder, journal = sys.argv[1:3]
real, held = os.fork, []

def met():
    if not held:
        pipe = subprocess.PIPE
        held.append(subprocess.Popen([sys.executable, "-c", holder, journal], stdin=pipe, stdout=pipe))
        held[0].stdout.readline()
    elif held[0].poll() is None:
        held[0].communicate()
    return real()

from raymond.cli import main
os.fork = met
sys.exit(main(sys.argv[3:]))
"""
"""Another process takes the lock before the first attempt to drive the run, and releases it before the second one."""


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    yield room
    room.clear()


def ended(room: Room, key: str = "r") -> Ran:
    done = room.raymond("wait", key)
    return Ran(room, key, done.returncode, done.stdout, done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("files", [SLOW, QUICK])
def test_twelve_starts_at_once_all_succeed_and_come_to_one_run(room: Room, files: dict[str, str]) -> None:
    flow, pipe = room.flow(files), subprocess.PIPE
    for key in ("a", "b", "c"):
        argv = [sys.executable, "-m", "raymond", "start", flow, "--id", key, "--input", "x"]
        starts = [
            subprocess.Popen(argv, cwd=room.path, env=room.environment, stdout=pipe, stderr=pipe, text=True)
            for _ in range(12)
        ]
        said = [(*one.communicate(timeout=PATIENCE), one.returncode) for one in starts]
        assert [(out, code) for out, _, code in said] == [(f"{key}\n", 0)] * 12, said
    room.go()
    for key in ("a", "b", "c"):
        done = ended(room, key)
        assert (done.out, len(done.all(RunStarted)), len(done.all(StepStarted))) == ("done\n", 1, 1)


def starting(room: Room) -> set[int]:
    return {pid for pid, line in room.processes().items() if " start " in f"{line} "}


@pytest.mark.slow
def test_a_start_waits_for_a_process_that_holds_the_lock_and_does_not_drive(room: Room) -> None:
    flow = room.flow(SLOW)
    room.raymond("start", flow, "--id", "r")
    until(lambda: (room.path / "ran").exists(), "the first step")
    for pid in starting(room):
        os.kill(pid, 9)
    until(lambda: not starting(room), "the end of the driver")
    Path(room.project.run("r").driver).unlink(missing_ok=True)
    argv = [sys.executable, "-c", MET, HOLDER, room.project.run("r").journal, "start", flow, "--id", "r"]
    again = subprocess.run(argv, cwd=room.path, env=room.environment, capture_output=True, text=True, timeout=PATIENCE)
    assert (again.returncode, again.stdout) == (0, "r\n"), again.stderr
    assert "no process was running it: it continues" in again.stderr
    room.go()
    assert ended(room).out == "done\n"


@pytest.mark.parametrize("command", ["start", "run"])
@pytest.mark.parametrize("key", ["", " "])
def test_an_empty_id_is_that_of_an_unset_variable(room: Room, command: str, key: str) -> None:
    refused = room.raymond(command, room.flow(QUICK), "--id", key)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        "error: --id is empty\nhint: is the variable it comes from set? without --id, a name is made up\n"
    )
    assert room.project.ids() == []


@pytest.mark.parametrize("command", ["start", "run"])
def test_a_named_pipe_is_not_waited_for(room: Room, command: str) -> None:
    os.mkfifo(room.path / "pipe")
    refused = room.raymond(command, room.flow(QUICK), "--input", "@pipe")
    assert (refused.returncode, refused.stderr.splitlines()[0]) == (2, "error: `pipe` is not a regular file")
    assert room.project.ids() == []


def test_what_a_shell_pipes_into_a_flag_is_read(room: Room) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"from a command")
    os.close(writer)
    flow = room.flow({"START.sh": 'echo "<result>$RAYMOND_INPUT</result>"'})
    done = room.raymond("run", flow, "--input", f"@/dev/fd/{reader}", pass_fds=[reader])
    os.close(reader)
    assert done.stdout == "from a command\n", done.stderr
