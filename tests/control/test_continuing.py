"""What continues by itself: decided under the lock that it is driven with, and never against its owner."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import builders
from raymond import cli
from raymond.cli import driving, resume
from raymond.cli import resume as answered
from raymond.cli.flags import ShowFlags
from raymond.control import drive, request, runs
from raymond.control.drive import Resumption, hold
from raymond.control.handle import RunHandle
from raymond.drivers.face import Quiet
from raymond.errors import NotContinued, RunBusy, RunDriven
from raymond.machine.events import (
    AgentStarted,
    AskEnded,
    AskStarted,
    Decision,
    Event,
    RequestTaken,
    RunResumed,
    RunStopped,
    StepStarted,
)
from raymond.machine.evolve import evolve, fold
from raymond.machine.requests import Request
from raymond.store import inbox, lock
from raymond.store.lock import Lock
from running import GO, Room, until

ASKS = {"START.sh": "echo '<ask next=\"END\">Ship it?</ask>'", "END.sh": "echo '<result>done</result>'"}
BY_ITSELF = Resumption(by_itself=True)


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Room]:
    room = Room(tmp_path)
    monkeypatch.chdir(room.path)
    monkeypatch.setenv("RAYMOND_HOME", str(room.home))
    room.drive(ASKS)
    yield room
    room.clear()


def never(seconds: float) -> None:
    raise AssertionError(f"waited for {seconds} s")


def test_a_stop_between_the_answer_and_the_driver_is_obeyed(room: Room) -> None:
    request.answer(room.project, "r", "main", "yes")
    request.stop(room.project, "r")
    with pytest.raises(NotContinued, match=r"^r is stopped, so it was not continued$"):
        hold(room.project, "r", by_itself=True)
    with pytest.raises(NotContinued, match=r"^r is stopped, so it was not continued$"):
        driving.launch(RunHandle(room.project, "r"), ShowFlags(), BY_ITSELF)
    assert [event for event in room.events("r") if isinstance(event, RunResumed)] == []
    hold(room.project, "r").close()


def test_what_was_only_answered_is_not_interrupted_and_left_alone_by_resume_all(
    room: Room, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["answer", "r", "yes", "--no-resume"]) == 0
    row = runs.row(room.project, "r")
    assert (row.status, row.group, row.reason) == ("answered", "needs you", "not continued yet")
    assert runs.look(room.project, "r").status == "answered"
    capsys.readouterr()
    assert cli.main(["status", "r"]) == 0
    assert capsys.readouterr().out.startswith("r: answered (not continued yet), not running\n")
    assert cli.main(["list", "--status", "answered"]) == 0
    assert "not continued yet" in capsys.readouterr().out
    assert cli.main(["resume", "--all", "--yes"]) == 0
    said = capsys.readouterr()
    left = "r is left out: it was answered and not continued; raymond resume r continues it\n"
    assert (said.out, said.err) == ("", left)
    assert room.again().result == "done"
    assert runs.row(room.project, "r").status == "completed"


def test_a_run_whose_driver_died_is_interrupted_whoever_answers_it() -> None:
    asks = AskStarted(agent="main", state="END.sh", question="?", number=1)
    also = AskStarted(agent="other", state="END.sh", question="?", number=2)
    answer: list[Event] = [
        RequestTaken(request="x", kind="answer"),
        AskEnded(agent="main", state="END.sh", answer="yes"),
    ]
    begun: list[Event] = [builders.start(builders.place(ASKS, "START.sh"))]
    begun += [AgentStarted(agent=name, state="START.sh") for name in ("main", "other")]

    def status(*events: Event) -> str:
        told = (begun, [asks, *events], answer)
        decisions = [Decision(seq=seq, time=float(seq), events=one) for seq, one in enumerate(told, 1)]
        return runs.undriven_status(fold(decisions))

    assert status(also) == "answered"
    assert status(msgspec.structs.replace(also, deadline=9.0)) == "interrupted"
    assert status(StepStarted(agent="other", step=1)) == "interrupted"


@pytest.mark.parametrize(
    ("stop", "status"),
    [
        (RunStopped(kind="paused"), "paused"),
        (RunStopped(kind="signal", signal=signal.SIGINT), "paused"),
        (RunStopped(kind="stop"), "stopped"),
        (RunStopped(kind="limit", limit="iterations", amount=1), "stopped"),
        (RunStopped(kind="signal", signal=signal.SIGTERM), ""),
    ],
)
def test_what_a_person_paused_is_theirs_and_what_the_machine_shut_down_is_not(
    room: Room, stop: RunStopped, status: str
) -> None:
    run = RunHandle(room.project, "r").read()
    evolve(run, stop)
    assert drive.why_not_continued(room.project, run) == (f"r is {status}" if status else "")


@pytest.mark.parametrize(
    ("patience", "least", "most"), [(drive.LOCK_PATIENCE, 2, 5), (drive.LOCK_PATIENCE_ALONE, 5, 15)]
)
def test_a_command_that_holds_the_run_is_waited_for(
    room: Room, patience: tuple[float, ...], least: float, most: float
) -> None:
    folder = room.project.run("r")
    command = lock.take(folder)
    drive.take_lock(folder, patience=patience, pause=lambda _: command.release()).release()
    command, waited, told = lock.take(folder), list[float](), list[str]()
    with pytest.raises(RunBusy) as caught:
        drive.take_lock(folder, tell=told.append, patience=patience, pause=waited.append)
    command.release()
    assert waited == sorted(waited)
    assert least < sum(waited) < most
    assert str(caught.value) == f"process {os.getpid()} holds the lock of r"
    assert told == [f"waiting: {caught.value}"]


def test_a_driver_is_not_waited_for_and_continues_the_run_itself(room: Room) -> None:
    folder = room.project.run("r")
    driver = lock.take(folder)
    driver.sign(folder.socket)
    with pytest.raises(RunDriven):
        drive.take_lock(folder, pause=never)
    driver.release()


class Patient(Quiet):
    """A face that lets go of a lock when it is told who waits for it."""

    def __init__(self, held: Lock) -> None:
        self._held = held
        self.told: list[str] = []

    def on_note(self, text: str) -> None:
        self.told.append(text)
        self._held.release()


@pytest.mark.slow
def test_a_resume_waits_for_a_command_that_holds_the_run(room: Room) -> None:
    face = Patient(lock.take(room.project.run("r")))
    hold(room.project, "r", face).close()
    assert face.told == [f"waiting: process {os.getpid()} holds the lock of r"]


@pytest.mark.slow
def test_that_another_process_drives_the_run_is_told_apart_from_a_failure(
    room: Room, capsys: pytest.CaptureFixture[str]
) -> None:
    flow = room.flow({"START.sh": f"{GO}; echo '<result>done</result>'"}, "long")
    with room.start("run", flow, "--id", "long") as live:
        until(lambda: lock.signed(room.project.run("long")).socket, "a driver")
        with pytest.raises(RunDriven, match=rf"^process {live.pid} drives long$"):
            driving.launch(RunHandle(room.project, "long"), ShowFlags(), BY_ITSELF)
        assert resume._resume_one(RunHandle(room.project, "long"), ShowFlags(), BY_ITSELF) == 0
        assert capsys.readouterr().err == "long is running already\n"
        (room.path / "go").touch()
        assert live.wait("long").result == "done"


def test_what_continues_by_itself_writes_where_its_last_driver_wrote(
    room: Room, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    flags = ["--log-file", "../log", "--log-format", "json", "--debug"]
    assert cli.main(["run", room.flow(ASKS), "--id", "logged", *flags]) == 3
    run = RunHandle(room.project, "logged")
    expected = ShowFlags(log_file=str(log), log_format="json", debug=True)
    assert driving.with_last_log(run, ShowFlags()) == expected
    assert cli.main(["answer", "logged", "yes", "--attach"]) == 0
    assert [line["type"] for line in map(json.loads, log.read_text().splitlines())][-2:] == ["AgentEnded", "RunEnded"]
    assert len(list((room.path / ".raymond" / "debug").iterdir())) == 2
    assert run.read().recording.log_file == str(log)


def test_a_log_that_cannot_be_written_any_more_keeps_no_run_from_continuing(
    room: Room, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "log"
    assert cli.main(["run", room.flow(ASKS), "--id", "logged", "--log-file", str(log)]) == 3
    log.unlink()
    log.parent.rmdir()
    capsys.readouterr()
    run = RunHandle(room.project, "logged")
    assert driving.with_last_log(run, ShowFlags()) == ShowFlags()
    told = f"--log-file {log}: no such file or directory; nothing more is written there\n"
    assert capsys.readouterr().err == told


def test_an_error_of_resume_all_names_the_run(room: Room, capsys: pytest.CaptureFixture[str]) -> None:
    gone = RunHandle(room.project, "gone")
    assert resume._resume_one(gone, ShowFlags(), BY_ITSELF) != 0
    assert capsys.readouterr().err.startswith("gone was not resumed\nerror: ")
    request.stop(room.project, "r")
    assert resume._resume_one(RunHandle(room.project, "r"), ShowFlags(), BY_ITSELF) == 0
    assert capsys.readouterr().err == "r is stopped, so it was not continued\n"


def test_a_run_that_has_ended_meanwhile_is_not_resumed_again(room: Room, capsys: pytest.CaptureFixture[str]) -> None:
    request.answer(room.project, "r", "main", "yes")
    room.again()
    before = room.events("r")
    for how in (BY_ITSELF, Resumption()):
        with pytest.raises(NotContinued, match=r"^r has ended"):
            driving.launch(RunHandle(room.project, "r"), ShowFlags(), how)
    assert room.events("r") == before


def test_an_answer_to_a_run_that_ends_before_it_continues_is_no_failure(
    room: Room, capsys: pytest.CaptureFixture[str]
) -> None:
    request.answer(room.project, "r", "main", "yes")
    room.again()
    for attach in (False, True):
        assert answered.continue_run(RunHandle(room.project, "r"), attach=attach) == 0
        assert capsys.readouterr().err.splitlines()[-1] == "answered; r has ended: raymond logs r"
    assert cli.main(["answer", "r", "main", "again"]) == 2


def test_a_failed_run_completes_with_the_result_that_a_person_gives(
    room: Room, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", room.flow({"START.sh": "exit 1"}, "fails"), "--id", "f"]) == 1
    capsys.readouterr()
    assert cli.main(["resume", "f", "--agent", "main", "--result", "by hand"]) == 0
    said = capsys.readouterr()
    assert said.out == "by hand\n"
    assert "run completed\n" in said.err
    assert runs.row(room.project, "f").status == "completed"


def test_a_stop_that_its_driver_did_not_live_to_hear_is_not_undone_by_itself(
    room: Room, capsys: pytest.CaptureFixture[str]
) -> None:
    with room.start(
        "run", room.flow({"START.sh": f"touch held\n{GO}\necho '<result>x</result>'"}), "--id", "s"
    ) as live:
        until((room.path / "held").exists, "the step")
        live.signal(signal.SIGSTOP)
        inbox.leave(room.project.run("s").inbox, Request(id="left", kind="stop"))
        live.signal(signal.SIGKILL)
    room.go()
    with pytest.raises(NotContinued, match=r"^a stop was left for a driver that died, so"):
        hold(room.project, "s", by_itself=True)
    assert cli.main(["resume", "--all", "--yes"]) == 0
    left = "s is left out: a stop was left for a driver that died; raymond resume s continues it\n"
    assert left in capsys.readouterr().err
    assert runs.look(room.project, "s").status == "interrupted"
