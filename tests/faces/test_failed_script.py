"""The last lines of a failed script are shown wherever its failure is."""

import os
import sys
from pathlib import Path

import pytest

from builders import Play
from raymond.faces.history import TextHistory
from raymond.faces.lines import Tail
from raymond.faces.live import Live
from raymond.faces.overview import run_lines
from raymond.faces.summary import ending
from raymond.machine.events import StepFailed
from raymond.store import journal
from raymond.store.home import UNPACKED
from running import Room

TESTS = "printf 'two tests\\033[2J failed\\n\\n  test_a\\n  test_b\\n' >&2; exit 1"
TOLD = ["| two tests\\x1b[2J failed", "|", "|   test_a", "|   test_b"]


def margin(lines: list[str]) -> list[str]:
    return [line.strip() for line in lines if line.strip().startswith("|")]


def test_lines_the_ending_and_status_show_what_it_said(tmp_path: Path) -> None:
    ran = Room(tmp_path).drive({"START.sh": TESTS})
    [failed] = ran.all(StepFailed)
    assert failed.output == "two tests\x1b[2J failed\n\n  test_a\n  test_b"
    assert margin(ran.lines) == TOLD
    first = ran.lines.index("main step 1 failed (script): ended with exit code 1: test_b")
    assert ran.lines[first + 1].startswith("    | two tests")
    assert margin(ending(ran.run, "failed").splitlines()) == TOLD
    assert margin(run_lines(ran.run, "failed", 0, str(tmp_path))) == TOLD


def test_logs_tells_the_failure_once_with_what_the_script_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    room = Room(tmp_path)
    room.drive({"START.sh": TESTS})
    folder = room.project.run("r")
    capsys.readouterr()
    TextHistory("", folder.transcripts, Tail()).show(list(journal.decisions(folder)))
    lines = capsys.readouterr().out.splitlines()
    [at] = [number for number, line in enumerate(lines) if " main failed " in line]
    assert lines[at].endswith("] #1 main failed (script): ended with exit code 1: test_b")
    assert margin(lines[at + 1 :]) == TOLD


@pytest.mark.slow
def test_logs_and_transitions_name_the_authors_file_and_not_the_copy_it_ran_from(tmp_path: Path) -> None:
    room = Room(tmp_path)
    flow = room.flow({"START.sh": "echo $0; echo '<goto>CHECK</goto>'", "CHECK.sh": "no_such_program; exit 3"})
    near = f"{os.path.relpath(flow, room.path)}/"
    room.raymond("run", flow, "--id", "r", "--debug")
    ran, failed = f"{near}START.sh\n", f"{near}CHECK.sh: line 1: no_such_program: command not found\n"
    [log] = (room.path / ".raymond" / "debug").glob("*/transitions.log")
    assert failed in log.read_text()

    def logs(*args: str) -> str:
        shown = room.raymond("logs", "r", *args).stdout
        assert f"/{UNPACKED}/" not in shown
        return shown

    assert ran in logs("--step", "1")
    assert failed in logs("--step", "2")
    whole = logs("--text")
    assert ran in whole
    assert failed in whole


@pytest.mark.parametrize(
    ("script", "output"),
    [
        ("echo broken >&2; exit 3", ""),
        ("echo shown; exit 3", "shown"),
        ("seq 1 50 >&2; exit 3", "\n".join(map(str, range(41, 51)))),
    ],
)
def test_what_the_error_says_is_not_said_twice(tmp_path: Path, script: str, output: str) -> None:
    [failed] = Room(tmp_path).drive({"START.sh": script}).all(StepFailed)
    assert failed.output == output


def test_the_live_view_shows_it_with_the_failure(capsys: pytest.CaptureFixture[str]) -> None:
    play = Play({"START.md": "", "S.sh": ""})
    play.say("<goto>S</goto>")
    play.fail("script", error="ended with exit code 1: test_b", output="two\n" + "x" * 30)
    face = Live(sys.stderr, clock=lambda: play.now, size=lambda: (30, 24))
    face.on_decisions(play.run, play.decisions)
    face.refresh(play.run)
    face.close()
    shown = [line.removesuffix("\x1b[0m") for line in capsys.readouterr().err.splitlines()]
    assert [line for line in shown if "    | " in line][-3:] == ["    | two", f"    | {'x' * 24}", f"    | {'x' * 6}"]
