"""Internal mode with checks that take long, and with processes that are killed: nothing is lost or done twice."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from inside import DONE, Inside
from raymond.control import runs
from raymond.store import journal
from raymond.store.run_folder import RunFolder
from running import driver_of, until

pytestmark = pytest.mark.slow


@pytest.fixture
def inside(tmp_path: Path) -> Inside:
    return Inside(tmp_path)


# A check that takes longer than a program waits


@pytest.fixture
def slow(tmp_path: Path) -> Inside:
    """A loop whose first item is done, with a check that waits for the file `go` beside the repository."""
    go, reached = tmp_path / "go", tmp_path / "reached"
    wait = f"[ -e answer.txt ] || exit 1\ntouch {reached}\nwhile [ ! -e {go} ]; do sleep 0.02; done\ngrep -q 42 answer.txt\n"
    inside = Inside(tmp_path, **{"check.sh": wait})
    inside.begin()
    inside.work({"answer.txt": "42\n"})
    assert inside.record(DONE, "--wait", "0s") == {
        "status": "checking",
        "workflow_id": "n",
        "title": "Write the answer",
        "command": "raymond continuous-session record --json --wait 90s",
    }
    until(reached.exists, "the check")
    return inside


def test_a_long_check_runs_on_and_is_asked_for(slow: Inside) -> None:
    assert "error: the loop is at work, or was cut off\n" in slow.refused("next", "--json")
    assert slow.refused("record", said=DONE) == (
        "error: the last item is being checked\n"
        "hint: raymond continuous-session record --wait 90s says what became of it\n"
    )
    assert slow.record(None, "--wait", "0s")["status"] == "checking"
    (slow.path.parent / "go").touch()
    assert slow.record(None, "--wait", "60s")["verdict"] == "passed"
    assert slow.subjects == ["start", "feat: write the answer"]


def test_a_check_whose_process_was_killed_runs_again_and_is_committed_once(slow: Inside) -> None:
    folder = slow.room.project.run("n")
    os.kill(driver_of(folder), signal.SIGKILL)
    slow.room.clear()
    until(lambda: not runs.is_driven(folder), "its end")
    assert "the loop is at work, or was cut off" in slow.refused("next", "--json")
    assert "the last item is being checked" in slow.refused("record", said="other words")
    (slow.path.parent / "go").touch()
    assert slow.record(None)["verdict"] == "passed"
    assert slow.subjects == ["start", "feat: write the answer"]


def test_stop_while_a_check_runs_lets_it_end(slow: Inside) -> None:
    assert slow.call("stop").stdout.startswith("Stopping n. Session 1 ends first")
    (slow.path.parent / "go").touch()
    assert slow.record(None)["status"] == "done"


def test_a_first_check_that_takes_long_is_waited_for(tmp_path: Path) -> None:
    go = tmp_path / "go"
    inside = Inside(tmp_path, **{"check.sh": f"while [ ! -e {go} ]; do sleep 0.02; done\ngrep -q 42 answer.txt\n"})
    begun = inside.begin("--wait", "0s")
    assert (begun["status"], begun["title"]) == ("checking", "")
    assert begun["command"] == "raymond continuous-session next --resume --json --wait 90s"
    go.touch()
    assert inside.next("--resume", "--wait", "60s")["title"] == "Write the answer"


# Kills


@pytest.mark.parametrize("step", [1, 3, 5, 7])
def test_a_killed_next_loses_nothing(inside: Inside, step: int) -> None:
    """Killed with all that it started after so many decisions: whoever asks again gets the item."""
    argv = [sys.executable, "-m", "raymond", "continuous-session", "next", "--start", "--json", "--id", "n"]
    folder = inside.room.project.run("n")
    _killed_after(inside, argv, folder, step)
    found = inside.next("--start", "--resume")
    assert (found["status"], found["title"], found["session"]) == ("item", "Write the answer", 1)
    inside.work({"answer.txt": "42\n"})
    assert inside.record()["verdict"] == "passed"


@pytest.mark.parametrize("step", [1, 3, 5, 8, 11, 15])
def test_a_killed_record_loses_nothing_and_commits_once(inside: Inside, step: int) -> None:
    """It and all that it started are killed: whoever asks again hears what became of the item, or is asked again."""
    inside.begin()
    inside.work({"answer.txt": "42\n"})
    folder = inside.room.project.run("n")
    argv = [sys.executable, "-m", "raymond", "continuous-session", "record", "--json"]
    _killed_after(inside, argv, folder, _decisions(folder) + step, said=DONE)
    again = inside.call("record", "--json")
    done = json.loads(again.stdout) if again.returncode == 0 else inside.record()
    assert (done["status"], done["verdict"]) == ("recorded", "passed")
    assert inside.subjects == ["start", "feat: write the answer"]
    assert inside.next()["session"] == 2
    assert inside.git("fsck", "--no-progress", "--no-dangling") == ""


def test_a_tree_that_is_gone_is_named_and_the_item_goes_on_when_it_is_back(inside: Inside) -> None:
    inside.begin()
    inside.work({"answer.txt": "42\n"})
    inside.record()
    inside.next()
    inside.work({"two.txt": "7\n"})
    away = inside.folder.rename(inside.path.parent / "away")
    waits = inside.record(code=3)
    assert (waits["status"], f"{inside.folder}: no such file" in waits["question"]) == ("waiting", True)
    assert "Nothing is decided yet" in waits["question"]
    away.rename(inside.folder)
    assert inside.room.raymond("answer", "n", "continue", "--no-resume").returncode == 0
    assert inside.record(None)["verdict"] == "passed", "the work is back"


def test_a_loop_without_its_tree_can_be_given_up(inside: Inside) -> None:
    inside.begin()
    inside.work({"answer.txt": "42\n"})
    inside.record()
    inside.next()
    subprocess.run(["rm", "-rf", inside.folder], check=True)
    assert inside.record(code=3)["status"] == "waiting"
    assert inside.room.raymond("cancel", "n").returncode == 0
    again = inside.next("--start", "--id", "m")
    assert again["title"] == "Write the other"
    assert Path(again["folder"], "answer.txt").read_text("utf-8") == "42\n"


def _killed_after(inside: Inside, argv: list[str], folder: RunFolder, decisions: int, said: str = "") -> None:
    quiet = subprocess.DEVNULL
    live = subprocess.Popen(
        argv, cwd=inside.path, env=inside.room.environment, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet
    )
    assert live.stdin is not None
    live.stdin.write(said.encode())
    live.stdin.close()
    until(lambda: live.poll() is not None or _decisions(folder) >= decisions, "a decision")
    live.kill()
    live.wait()
    inside.room.clear()
    until(lambda: not runs.is_driven(folder), "the end of its driver")


def _decisions(folder: RunFolder) -> int:
    return len(list(journal.decisions(folder))) if folder.exists else 0
