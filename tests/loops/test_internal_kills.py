"""Loops from the inside with checks that take long, and with processes that are killed: nothing is lost or done twice."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from inside import DONE, Inside
from raymond.control import runs
from raymond.store import journal
from running import driver_of, until

pytestmark = pytest.mark.slow


@pytest.fixture
def inside(tmp_path: Path) -> Inside:
    return Inside(tmp_path)


# A check that takes longer than anybody waits


@pytest.fixture
def slow(tmp_path: Path) -> Inside:
    """A loop whose first item is done, with a check that waits for the file `go` beside the repository."""
    go = tmp_path / "go"
    wait = f"touch {tmp_path}/reached\nwhile [ ! -e {go} ]; do sleep 0.02; done\ngrep -q 42 answer.txt\n"
    inside = Inside(tmp_path, **{"check.sh": wait})
    inside.begin()
    inside.write({"answer.txt": "42\n"})
    assert inside.record(DONE, "--wait", "0s") == {
        "status": "checking",
        "workflow_id": "n",
        "title": "Write the answer",
    }
    until(lambda: (tmp_path / "reached").exists(), "the check")
    return inside


def test_a_long_check_runs_on_and_is_asked_for(slow: Inside) -> None:
    checked = (
        "error: the last item is being checked\n"
        "hint: raymond continuous-session record --wait 90s says what became of it\n"
    )
    assert slow.refused("next", "--json") == checked
    assert slow.refused("record", said=DONE) == checked
    assert slow.record(None, "--wait", "0s")["status"] == "checking"
    (slow.path.parent / "go").touch()
    assert slow.record(None, "--wait", "60s")["verdict"] == "passed"
    assert slow.subjects == ["start", "feat: write the answer"]


def test_a_check_whose_process_was_killed_runs_again_and_is_committed_once(slow: Inside) -> None:
    folder = slow.room.project.run("n")
    os.kill(driver_of(folder), signal.SIGKILL)
    slow.room.clear()
    until(lambda: not runs.is_driven(folder), "its end")
    assert "the last item is being checked" in slow.refused("next", "--json")
    assert "the last item is being checked" in slow.refused("record", said="other words")
    (slow.path.parent / "go").touch()
    assert slow.record(None)["verdict"] == "passed"
    assert slow.subjects == ["start", "feat: write the answer"]


def test_stop_while_a_check_runs_lets_it_end(slow: Inside) -> None:
    assert slow.call("stop").stdout.startswith("Stopping n. Session 1 ends first")
    (slow.path.parent / "go").touch()
    assert slow.record(None)["next"] is False


# Kills


@pytest.mark.parametrize("step", [1, 3, 5])
def test_a_killed_next_loses_nothing(inside: Inside, step: int) -> None:
    """Killed after so many decisions of its run are written: whoever asks again gets the item."""
    with inside.room.start("continuous-session", "next", "--json", "--id", "n") as live:
        folder = inside.room.project.run("n")
        until(lambda: live.process.poll() is not None or _decisions(folder) >= step, "a decision")
        live.signal(signal.SIGKILL)
        live.process.wait()
    found = inside.next("--resume")
    assert (found["status"], found["item"]["title"], found["session"]) == ("item", "Write the answer", 1)
    inside.write({"answer.txt": "42\n"})
    assert inside.record()["verdict"] == "passed"


@pytest.mark.parametrize("step", [3, 7, 11, 15])
def test_a_killed_record_loses_nothing_and_commits_once(inside: Inside, step: int) -> None:
    """It and all that it started are killed: whoever asks again hears what became of the item, or is asked again."""
    inside.begin()
    inside.write({"answer.txt": "42\n", "../said": DONE})
    folder = inside.room.project.run("n")
    before = _decisions(folder)
    argv, quiet = [sys.executable, "-m", "raymond", "continuous-session", "record", "--json"], subprocess.DEVNULL
    with (inside.path.parent / "said").open() as said:
        live = subprocess.Popen(
            argv, cwd=inside.path, env=inside.room.environment, stdin=said, stdout=quiet, stderr=quiet
        )
    until(lambda: live.poll() is not None or _decisions(folder) >= before + step, "a decision")
    live.kill()
    live.wait()
    inside.room.clear()
    until(lambda: not runs.is_driven(folder), "the end of its driver")
    again = inside.call("record", "--json")
    done = json.loads(again.stdout) if again.returncode == 0 else inside.record()
    assert (done["verdict"], done["next"]) == ("passed", True)
    assert inside.subjects == ["start", "feat: write the answer"]
    assert inside.next()["session"] == 2


def _decisions(folder: Any) -> int:
    return len(list(journal.decisions(folder))) if folder.exists else 0
