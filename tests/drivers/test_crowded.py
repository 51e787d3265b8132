"""The real command on a machine without room for its steps: it waits, charges nothing and leaves nothing behind."""

import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from raymond.machine.events import StepFailed, StepStarted
from running import PATIENCE, Ran, Room, until

FLOW = {
    "START.sh": "for i in $(seq 20); do echo '<fork>WORK</fork>'; done; echo '<wait>END</wait>'",
    "WORK.sh": "sleep 0.3; echo '<result>well</result>'",
    "END.sh": 'echo "<result>$(grep -o well <<< "$RAYMOND_RESULTS" | wc -l)</result>"',
}


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    yield room
    room.clear()


def limited(room: Room, files: int, taken: int) -> Ran:
    """Twenty scripts at once, in a process that may open so many `files`, of which some are `taken`."""

    def prepare() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
        for fd in range(files - taken, files):
            os.dup2(0, fd)

    args = ("run", room.flow(FLOW), "--id", "r", "--max-parallel", "40")
    done = room.raymond(*args, close_fds=False, preexec_fn=prepare)
    return Ran(room, "r", done.returncode, done.stdout, done.stderr)


def most_at_once(ran: Ran) -> int:
    """How many steps ran at the same time, by the journal."""
    running, most = 0, 0
    for event in ran.events:
        running += isinstance(event, StepStarted)
        running -= type(event).__name__ in ("StepFinished", "StepFailed", "StepInterrupted")
        most = max(most, running)
    return most


@pytest.mark.slow
@pytest.mark.parametrize("taken", [0, 20])
def test_no_more_steps_run_at_once_than_files_can_be_opened_for_and_that_is_said_once(taken: int, room: Room) -> None:
    """Whoever started the process may have left files open in it."""
    ran = limited(room, 64, taken)
    assert (ran.code, ran.result, ran.all(StepFailed)) == (0, "20", []), ran.err
    most = most_at_once(ran)
    assert most < 3 if taken else 5 < most < 10
    said = f"at most {most} steps run at once: this process may not open more files (ulimit -n)"
    assert [line for line in ran.lines if "ulimit" in line] == [said]


@pytest.mark.slow
def test_a_program_that_is_being_written_is_started_when_it_is_complete(room: Room) -> None:
    program = room.path / "bin" / "bash"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nexec /bin/bash "$@"\n')
    program.chmod(0o755)
    room.environment["PATH"] = f"{program.parent}:{room.environment['PATH']}"
    writer = program.open("a")
    flow = room.flow({"START.sh": 'echo "<result>$RAYMOND_ATTEMPT</result>"'})
    with writer, room.start("run", flow, "--id", "r", "--max-turns", "1") as live:
        live.sees("scripts: none starts until ")
        assert "this machine cannot start it: text file busy" in room.raymond("status", "r").stdout
        writer.close()
        ran = live.wait()
    assert (ran.code, ran.result) == (0, "1"), ran.err
    assert {(one.kind, one.charged) for one in ran.all(StepFailed)} == {("machine", False)}
    assert (ran.run.turns, ran.run.iterations) == (0, 1)


LOOPS = {
    "START.sh": "for i in 1 2 3; do echo '<fork>LOOP</fork>'; done; echo '<fork>ASK</fork><wait>END</wait>'",
    "LOOP.sh": """\
        # /// raymond
        # max_visits: 10000
        # ///
        echo "$RAYMOND_STEP_KEY" >> ledger
        sleep 0.05
        [ -e go ] && echo '<result>looped</result>' || echo '<goto input="round">LOOP</goto>'
        """,
    "ASK.sh": "echo '<ask next=\"TOLD\">Which?</ask>'",
    "TOLD.sh": 'echo "<result>told $RAYMOND_INPUT</result>"',
    "END.sh": "echo '<result>end</result>'",
}


@pytest.mark.slow
@pytest.mark.parametrize("files", [3, 9])
def test_a_driver_waits_when_it_may_open_no_more_files_for_a_while(files: int, room: Room) -> None:
    """Neither its steps nor its inbox, its door or its state file end it; it has 9 open itself."""
    ledger = room.path / "ledger"
    with room.start("run", room.flow(LOOPS), "--id", "r") as live:
        live.sees("asks: Which?")
        until(lambda: len(ledger.read_text().split()) > 20, "some rounds")
        soft, hard = resource.prlimit(live.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(live.pid, resource.RLIMIT_NOFILE, (files, hard))
        live.sees("this machine cannot start it: too many open files")
        waiting = room.popen("answer", "r", "yes", "--no-resume")
        live.sees("the state file")  # was not written: a second and more has passed, and the inbox was looked at
        resource.prlimit(live.pid, resource.RLIMIT_NOFILE, (soft, hard))
        if waiting.wait(PATIENCE):
            assert room.raymond("answer", "r", "yes", "--no-resume").returncode == 0, "it was told to ask again"
        room.go()
        ran = live.wait()
    assert (ran.code, ran.result) == (0, "end"), ran.err
    assert {(one.kind, one.charged) for one in ran.all(StepFailed)} == {("machine", False)}
    done = ledger.read_text().split()
    assert len(done) == len({*done}), "no step ran twice"
    room.nothing_runs()


@pytest.mark.slow
@pytest.mark.parametrize("files", [14, 16, 18, 20])
def test_a_driver_without_room_for_files_lives_and_can_be_stopped(room: Room, files: int) -> None:
    """Not even a module that it needs now can be loaded."""

    def prepare() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    room.raymond("run", room.flow(FLOW), "-d", "--id", "r", preexec_fn=prepare)
    until(lambda: room.raymond("stop", "r", "--now").returncode == 0, "the stop")
    until(lambda: room.raymond("status", "r").stdout.startswith("r: stopped"), "its end")


@pytest.mark.slow
def test_files_of_agents_that_have_ended_make_room_for_others(room: Room) -> None:
    wide = "for i in $(seq 30); do echo '<fork>WORK</fork>'; done; echo '<wait>END</wait>'"

    def prepare() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (26, 26))

    done = room.raymond(
        "run", room.flow(FLOW | {"START.sh": wide, "WORK.sh": "echo '<result>well</result>'"}), preexec_fn=prepare
    )
    assert (done.returncode, done.stdout) == (0, "30\n"), done.stderr


@pytest.mark.slow
def test_files_of_agents_that_wait_for_their_next_step_make_room_for_others(room: Room) -> None:
    files = {
        "START.sh": "for i in $(seq 12); do echo '<fork>WORK</fork>'; done; echo '<wait>END</wait>'",
        "WORK.sh": "echo '<goto>AGAIN</goto>'",
        "AGAIN.sh": "echo '<result>well</result>'",
    }

    def prepare() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (18, 18))

    done = room.raymond("run", room.flow(FLOW | files), preexec_fn=prepare)
    assert (done.returncode, done.stdout) == (0, "12\n"), done.stderr


def test_a_run_that_has_ended_is_no_failure_because_few_files_can_be_opened(room: Room) -> None:
    """What turns printed is removed once the driver has closed what it needs no more."""
    lower = "import resource, sys; resource.prlimit(int(sys.argv[1]), resource.RLIMIT_NOFILE, (14, 14))"
    script = f"""
        mkdir -p spool/9.1 && touch spool/9.1/out
        "{sys.executable}" -c '{lower}' $PPID
        echo '<result>done</result>'
        """
    folder = room.project.run("r")
    with room.start("run", room.flow({"START.sh": f'cd "{folder.path}"{script}'}), "--id", "r") as live:
        ran = live.wait()
    assert (ran.code, ran.result) == (0, "done"), ran.err
    assert not os.path.exists(folder.spool)
