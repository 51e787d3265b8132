"""The real command, started by a process that leaves it in an odd state: results are as they always are."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from raymond.machine.events import RunStopped, StepFailed
from running import PATIENCE, Ran, Room, as_anyone, until

IGNORED = "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)"
BLOCKED = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())"
CLOSED = "import os; os.closerange(0, 3)"
DETACHED = "import os; os.setsid()"
SLOW = pytest.mark.slow
BROKEN = {"START.sh": "echo '<goto>DEPLOY</goto>'; exit 7", "DEPLOY.sh": "echo '<result>deployed</result>'"}


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    yield room
    room.clear()


def launcher(state: str, *args: str) -> list[str]:
    """A program that gets into `state` and then becomes raymond."""
    become = "import os, sys; os.execv(sys.executable, [sys.executable, '-m', 'raymond', *sys.argv[1:]])"
    return [sys.executable, "-c", f"{state}\n{become}", *args]


def command(room: Room, state: str, files: dict[str, str], *args: str, before: tuple[str, ...] = ()) -> Ran:
    """Start a workflow from `state` and wait for its end."""
    done = subprocess.run(
        [*before, *launcher(state, "run", room.flow(files), "--id", "r", *args)],
        cwd=room.path,
        env=room.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    return Ran(room, "r", done.returncode, done.stdout, done.stderr)


def crashing(room: Room) -> dict[str, str]:
    """A workflow whose agent, the backend `mine`, crashes whenever it is asked."""
    program = room.path / "agent"
    program.write_text("#!/bin/sh\nexit 9\n")
    program.chmod(0o755)
    room.settings(f'[backends.mine]\ncommand = ["{program}"]\n')
    return {"START.md": "---\nretries: 1\n---\nhello"}


@pytest.mark.slow
@pytest.mark.parametrize("portable", ["", pytest.param("1", marks=SLOW)])
def test_a_script_fails_although_whoever_started_us_ignores_the_end_of_children(room: Room, portable: str) -> None:
    if portable:
        room.environment["RAYMOND_PORTABLE"] = portable
    ran = command(room, IGNORED, BROKEN)
    assert (ran.code, [failed.exit_code for failed in ran.all(StepFailed)]) == (1, [7])


@pytest.mark.slow
def test_a_turn_that_crashes_uses_up_its_attempts_although_the_end_of_children_is_ignored(room: Room) -> None:
    ran = command(room, IGNORED, crashing(room), "--backend", "mine")
    assert (ran.code, [(one.kind, one.charged) for one in ran.all(StepFailed)]) == (1, [("crash", True)] * 2)


@pytest.mark.slow
def test_a_script_hears_of_its_own_children_and_has_no_signal_blocked(room: Room) -> None:
    look = "grep -E '^Sig(Blk|Ign)' /proc/self/status > seen; echo '<result>ok</result>'"
    assert command(room, f"{IGNORED}\n{BLOCKED}", {"START.sh": look}).code == 0
    masks = dict(line.split(":\t") for line in (room.path / "seen").read_text().splitlines())
    assert int(masks["SigBlk"], 16) == 0
    assert not int(masks["SigIgn"], 16) & (1 << (signal.SIGCHLD - 1))


@pytest.mark.slow
def test_signals_that_were_blocked_when_we_were_started_still_stop_the_run(room: Room) -> None:
    argv = launcher(BLOCKED, "run", room.flow({"START.sh": "touch runs; sleep 600"}), "--id", "r")
    with subprocess.Popen(argv, cwd=room.path, env=room.environment, stderr=subprocess.DEVNULL) as live:
        until(lambda: (room.path / "runs").exists() or live.poll() is not None, "the script")
        live.send_signal(signal.SIGTERM)
        assert live.wait(PATIENCE) == 128 + signal.SIGTERM
    stops = [event for event in room.events() if isinstance(event, RunStopped)]
    assert stops == [RunStopped(kind="signal", signal=signal.SIGTERM)]
    room.nothing_runs()


@pytest.mark.slow
@pytest.mark.parametrize(
    "state", [CLOSED, *(pytest.param(one, marks=SLOW) for one in (DETACHED, f"{CLOSED}\n{DETACHED}"))]
)
def test_what_scripts_say_arrives_without_streams_and_without_a_terminal(room: Room, state: str) -> None:
    say = "read nothing; echo out; echo err >&2; echo '<result>said</result>'"
    ran = command(room, state, {"START.sh": say})
    assert (ran.code, ran.result) == (0, "said")
    [told] = ran.transcript()
    assert (told["out"], told["err"]) == ("out\n<result>said</result>\n", "err\n")


def modes(top: Path) -> dict[str, int]:
    """The mode of everything below a folder."""
    return {str(path.relative_to(top)): stat.S_IMODE(path.lstat().st_mode) for path in top.rglob("*")}


@pytest.mark.slow
@pytest.mark.parametrize("mask", ["0777", pytest.param("0000", marks=SLOW), pytest.param("0277", marks=SLOW)])
def test_our_files_are_private_and_usable_and_those_of_scripts_follow_the_umask(room: Room, mask: str) -> None:
    files = {"START.sh": "umask > mask; touch made; echo '<goto>MORE</goto>'", "MORE.md": "say it"}
    files["replies.yaml"] = "MORE.md: <result>fine</result>\n"
    state = f"import os; os.umask(0o{mask})"
    if mask != "0000":
        # The redirection itself could not be written to otherwise.
        (room.path / "mask").touch()
    ran = command(room, state, files, "--backend", "scripted", before=as_anyone())
    assert (ran.code, ran.out) == (0, "fine\n"), ran.err
    assert (room.path / "mask").read_text() == f"{mask}\n"
    assert stat.S_IMODE(os.lstat(room.path / "made").st_mode) == 0o666 & ~int(mask, 8)
    kept = modes(room.home)
    assert [path for path, mode in kept.items() if mode & 0o077 or not mode & 0o400] == []


TAKEN = """
import contextlib, os, signal

def take(*_):
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass

signal.signal(signal.SIGCHLD, take)
from raymond.__main__ import main
main()
"""
"""A program that drives the run itself, and takes the exit codes of all its children."""
UNKNOWN = "its exit code is unknown: another part of this process has taken it"


def test_a_script_whose_exit_code_is_unknown_has_not_succeeded(room: Room) -> None:
    ran = command(room, TAKEN, BROKEN)
    assert (ran.code, [(one.kind, one.error) for one in ran.all(StepFailed)]) == (1, [("crash", UNKNOWN)])


@pytest.mark.slow
def test_a_turn_whose_exit_code_is_unknown_uses_up_an_attempt(room: Room) -> None:
    ran = command(room, TAKEN, crashing(room), "--backend", "mine")
    assert [(one.kind, one.error, one.charged) for one in ran.all(StepFailed)] == [("crash", UNKNOWN, True)] * 2
    assert ran.code == 1
