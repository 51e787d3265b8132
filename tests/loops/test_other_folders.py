"""Several loops on one checkout, each with documents of its own: none takes another for itself, or works over it."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from folders import Folders
from looping import QUEUE, WAIT, Night
from raymond.control import runs
from raymond.loops import unended
from running import until

pytestmark = pytest.mark.slow
STATE = "app1/docs/.task-loop-state.json"
OPEN = "error: t was cut off in the middle of an item: 1.1.1. Work in app1/docs\n"


def cut_off(path: Path) -> Folders:
    """An item of app1 is open: its loop was killed while its agent worked."""
    one = Folders(path)
    one.write(
        {"app2/docs/session_logs/20250117_0900_session.md": f"# S\n\n## Next Steps\n\n{QUEUE}", "P.md": "Do it.\n"}
    )
    one.commit("queue")
    kill(one, "app1")
    return one


def kill(one: Folders, at: str, *flags: str) -> None:
    """Kill a loop over tasks while its agent works; agents that come later do its items."""
    one.agent(f"touch $TEST_ROOM/../half\n{WAIT}")
    with one.room.start("-C", at, "task-loop", "start", "--id", "t", "--pause", "0s", *flags) as live:
        until((one.path.parent / "half").exists, "the agent works")
        live.signal(signal.SIGKILL)
        live.process.wait()
        one.room.clear()
    one.agent("echo b c >> work.txt; echo ITERATION_COMPLETE")


def completes(one: Folders, at: str, *words: str) -> bool:
    """Whether a loop over tasks there comes to its end."""
    done = one.room.raymond("-C", at, "task-loop", *words)
    return done.returncode == 0 and "completed: nothing that can be worked on is left" in done.stdout


def hint(command: str) -> str:
    return f"hint: {command} goes on with it, raymond cancel t ends the loop\n"


@pytest.mark.parametrize("is_lost", ["", "gone", "broken", "copied"])
def test_no_loop_works_over_the_open_item_of_another_folder(tmp_path: Path, is_lost: str) -> None:
    one = cut_off(tmp_path)
    if is_lost == "gone":
        (one.path / STATE).unlink()
    elif is_lost == "broken":
        (one.path / STATE).write_text("{", "utf-8")
    elif is_lost == "copied":
        shutil.copy(one.path / STATE, one.path / "app2/docs")
    before, branch = one.subjects, one.git("branch", "--show-current")
    for words in (
        ("continuous-session", "start"),
        ("task-loop", "start", "--yes"),
        ("story-loop", "start"),
        ("ralph", "../P.md", "--gate", "true"),
    ):
        assert one.refused(*words, at="app2") == OPEN + hint("raymond -C ../app1 task-loop resume")
    one.write({"stories.md": "- [ ] Handle empty input\n"})
    adding = ("prd", "import", "stories.md", "--docs", "plan", "--yes", "--verify", "true")
    done = one.room.raymond(*adding)
    assert (done.returncode, done.stderr.endswith(OPEN + hint("raymond -C app1 task-loop resume"))) == (2, True)
    assert (one.subjects, one.git("branch", "--show-current")) == (before, branch)
    (one.path / "stories.md").unlink()
    assert completes(one, "app1", "resume", "--yes")
    assert completes(one, "app2", "start", "--pause", "0s")


def test_no_loop_works_over_the_open_item_of_other_documents(tmp_path: Path) -> None:
    one = Folders(tmp_path)
    kill(one, ".", "--docs", "plan")
    for words in (
        ("continuous-session", "start"),
        ("task-loop", "start"),
        ("task-loop", "start", "--docs", "app1/docs"),
    ):
        said = one.refused(*words)
        assert said == OPEN.replace("app1/docs", "plan") + hint("raymond task-loop resume --docs plan")


def test_a_loop_that_lost_its_state_file_is_the_one_of_its_folder(tmp_path: Path) -> None:
    one = cut_off(tmp_path)
    (one.path / STATE).unlink()
    (tmp_path / "link").symlink_to(one.path / "app1")
    for words, at in (((), "app1"), ((), "../link"), (("--docs", "app1/docs"), "")):
        assert one.ask("status", *words, at=at)["workflow_id"] == "t"


def test_the_status_of_a_folder_without_a_loop_names_where_there_is_one(tmp_path: Path) -> None:
    one = cut_off(tmp_path)
    where = "task-loop t is in ../app1/docs: raymond -C ../app1 task-loop status\n"
    for verb in ("status", "stop", "resume"):
        done = one.room.raymond("task-loop", verb, cwd=one.path / "app2")
        assert (done.returncode, done.stdout + done.stderr) == (0, f"no active task loop\n{where}")
    assert one.ask("status", at="app2") == {"loop": "task-loop", "status": None, "state": None}
    assert one.ask("status", at="app1")["workflow_id"] == "t"


def test_a_loop_begins_beside_one_of_which_no_item_is_open(tmp_path: Path) -> None:
    one = Folders(tmp_path)
    one.agent("echo ITERATION_COMPLETE")
    flags = ("--pause", "0s", "--attempts", "1", "--on-fail", "pause")
    assert one.room.raymond("-C", "app1", "task-loop", "start", "--id", "t", *flags).returncode == 3
    one.agent("echo b c >> work.txt; echo ITERATION_COMPLETE")
    assert completes(one, "app2", "start", "--id", "s", "--pause", "0s", "--on-dirty", "commit")
    assert one.ask("status", at="app1")["workflow_id"] == "t"
    assert one.ask("status", at="app2")["workflow_id"] == "s"


def test_a_loop_that_was_killed_is_not_resumed_from_another_folder(tmp_path: Path) -> None:
    one = Folders(tmp_path)
    one.agent(f"touch $TEST_ROOM/../half\n{WAIT}echo ITERATION_COMPLETE")
    with one.room.start("-C", "app1", "task-loop", "start", "--id", "t", "--pause", "0s") as live:
        until((tmp_path / "half").exists, "the agent works")
        told = "hint: raymond -C ../app1 task-loop status shows it, raymond -C ../app1 task-loop stop ends it "
        assert told in one.refused("task-loop", "start", "--yes", at="app2")
        live.signal(signal.SIGKILL)
        live.process.wait()
        one.room.clear()
    said = one.refused("task-loop", "start", "--yes", at="app2")
    assert said.startswith("error: t was cut off in the middle of an item: 1.1.1. Work in app1/docs\n")
    assert "hint: raymond -C ../app1 task-loop resume goes on with it, raymond cancel t ends the loop\n" in said
    assert one.room.raymond("cancel", "t").returncode == 0
    one.agent("echo b c >> work.txt; echo ITERATION_COMPLETE")
    assert completes(one, "app2", "start", "--pause", "0s")


def test_a_loop_in_a_worktree_keeps_no_other_from_the_checkout(tmp_path: Path) -> None:
    one = Folders(tmp_path)
    one.agent(f"touch $TEST_ROOM/../half\n{WAIT}echo b > work.txt; echo ITERATION_COMPLETE")
    with one.room.start("-C", "app1", "task-loop", "start", "--id", "t", "--pause", "0s", "--worktree") as live:
        until((tmp_path / "half").exists, "the agent works")
        one.agent("echo b c >> work.txt; echo ITERATION_COMPLETE")
        assert completes(one, "app1", "start", "--pause", "0s")
        shown = one.room.raymond("task-loop", "status").stdout
        assert "task-loop t is in ../room-t/app1 (running): cd ../room-t/app1 && raymond task-loop status" in shown
        live.signal(signal.SIGKILL)
        live.process.wait()


def test_the_journal_of_a_loop_that_has_ended_need_not_be_read(tmp_path: Path) -> None:
    night = Night(tmp_path)
    assert night.loop().code == 0
    folder = night.room.project.run("n")
    assert runs.has_ended(folder)
    os.utime(folder.journal)
    assert not runs.has_ended(folder), "something may have been added since"
    (tmp_path / "open").mkdir()
    one = cut_off(tmp_path / "open")
    assert not runs.has_ended(one.room.project.run("t"))
    assert [there.id for there in unended.every(one.room.project)] == ["t"]
