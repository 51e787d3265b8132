"""`kill -9` of the verifier alone: its gate or its seal is made again, and nothing of it is left."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from raymond.machine.events import AgentFailed, GateEnded, SealEnded, StepInterrupted, StepStarted
from running import GO, Ran, Room, until

pytestmark = pytest.mark.slow

KILLED = "the verifier was killed by signal 9, perhaps for want of memory"
RED = "grep -q right answer.txt"


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    yield room
    room.clear()


def flow(gate: str, writes: str = "") -> dict[str, str]:
    """A prompt whose turns end at once, or write `writes` into the file that decides the check."""
    text = (
        f"{{text: <result>done</result>, writes: {{tests/check.sh: '{writes}'}}}}"
        if writes
        else "<result>done</result>"
    )
    policy = f"gate: '{gate}'\ngate_reruns: 0\ngate_tries: 0"
    return {"START.md": f"---\n{policy}\n---\nDo it: <result>done</result>\n", "replies.yaml": f"START: [[{text}]]\n"}


def phases(ran: Ran) -> list[str]:
    return [event.phase for event in ran.all(StepStarted)]


def test_a_gate_whose_verifier_was_killed_runs_again(room: Room) -> None:
    """The command that it ran is ended first: two checks of one directory would disturb each other."""
    ran = room.command(flow("test -e once || { touch once; (sleep 600; :) & kill -9 $PPID; sleep 600; }"))
    assert (ran.code, ran.out) == (0, "done\n"), ran.err
    [cut] = ran.all(StepInterrupted)
    assert (cut.by_death, cut.cause) == (True, KILLED)
    assert phases(ran) == ["seal", "", "gate", "gate"], "the work is not done again"
    assert f"main step 3 interrupted: {KILLED}\n" in ran.err
    room.nothing_runs()


def test_a_verifier_that_is_killed_every_time_fails_the_visit_with_words_that_are_true(room: Room) -> None:
    ran = room.command(flow("kill -9 $PPID; sleep 600"))
    assert ran.code == 1
    assert [one.cause for one in ran.all(StepInterrupted)] == [KILLED] * 5
    assert not ran.all(GateEnded)
    [failed] = ran.all(AgentFailed)
    assert (failed.kind, failed.error) == ("crash", f"{KILLED}; the visit was cut off 5 times in a row")


def test_a_seal_whose_verifier_was_killed_is_made_again(room: Room) -> None:
    """A git of ours kills whoever asks it for a seal, once."""
    git = room.path.parent / "bin" / "git"
    git.parent.mkdir()
    once = room.path.parent / "once"
    git.write_text(
        f'#!/bin/sh\ncase "$GIT_DIR" in */seals/git-*) [ -e {once} ] || {{ touch {once}; kill -9 $PPID; }};; esac\n'
        f'exec {shutil.which("git")} "$@"\n'
    )
    git.chmod(0o755)
    room.environment["PATH"] = f"{git.parent}:{room.environment['PATH']}"
    ran = room.command(flow("true"))
    assert (ran.code, ran.out) == (0, "done\n"), ran.err
    assert phases(ran) == ["seal", "seal", "", "gate"]
    assert [one.cause for one in ran.all(StepInterrupted)] == [KILLED]
    assert len(ran.all(SealEnded)) == 1


def test_the_twin_of_a_verifier_that_was_killed_is_removed(room: Room) -> None:
    check = room.path / "tests" / "check.sh"
    check.parent.mkdir()
    check.write_text(f"{RED}\n")
    ran = room.command(flow(". tests/check.sh || { kill -9 $PPID; sleep 600; }", "true"))
    assert ran.code == 1, ran.err
    assert not [*room.folder().glob("seals/*.twin")]


def test_the_twin_of_a_driver_that_was_killed_is_removed_by_resume(room: Room) -> None:
    check = room.path / "tests" / "check.sh"
    check.parent.mkdir()
    check.write_text(f"{RED} && exit; touch {room.path}.twin; {GO}; exit 1\n")
    with room.start("run", room.flow(flow("sh tests/check.sh", "true")), "--id", "r") as live:
        until(lambda: Path(f"{room.path}.twin").exists() or None, "the twin")
        live.process.kill()
        live.process.wait()
    assert [path.name for path in room.folder().glob("seals/*.twin")] == ["3.twin"]
    room.go()
    assert room.resume().code == 3
    assert not [*room.folder().glob("seals/*.twin")]
