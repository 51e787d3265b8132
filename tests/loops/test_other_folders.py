"""Several loops on one checkout, each with documents of its own: none takes another for itself, or works over it."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from folders import DONE, Folders
from looping import QUEUE, WAIT, Night
from raymond.control import runs
from raymond.loops import unended
from running import until

pytestmark = pytest.mark.slow
STATE = "app1/docs/.task-loop-state.json"
OPEN = "error: an item of t is handed out to another program\n"


def handed(path: Path) -> Folders:
    """An item of app1 is in work."""
    one = Folders(path)
    one.write(
        {"app2/docs/session_logs/20250117_0900_session.md": f"# S\n\n## Next Steps\n\n{QUEUE}", "P.md": "Do it.\n"}
    )
    one.commit("queue")
    assert one.ask("next", "--id", "t", at="app1")["item"]["title"] == "1.1.1. Work in app1/docs"
    return one


def hint(command: str) -> str:
    return f"hint: {command} takes what became of it, raymond cancel t ends the loop\n"


@pytest.mark.parametrize("is_lost", ["", "gone", "broken", "copied"])
def test_no_loop_works_over_the_open_item_of_another_folder(tmp_path: Path, is_lost: str) -> None:
    one = handed(tmp_path)
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
        ("task-loop", "next"),
        ("story-loop", "next"),
        ("ralph", "../P.md", "--gate", "true"),
    ):
        assert one.refused(*words, at="app2") == OPEN + hint("raymond -C ../app1 task-loop record")
    one.write({"stories.md": "- [ ] Handle empty input\n"})
    adding = ("prd", "import", "stories.md", "--docs", "plan", "--yes", "--verify", "true")
    done = one.room.raymond(*adding)
    assert (done.returncode, done.stderr.endswith(OPEN + hint("raymond -C app1 task-loop record"))) == (2, True)
    assert (one.subjects, one.git("branch", "--show-current")) == (before, branch)
    (one.path / "stories.md").unlink()
    one.write({"app1/work.txt": "b\n"})
    assert one.ask("record", said=DONE, at="app1")["verdict"] == "passed"
    assert one.ask("next", at="app2", code=0)["item"]["title"] == "1.1.1. Work in app2/docs"


def test_no_loop_works_over_the_open_item_of_other_documents(tmp_path: Path) -> None:
    one = Folders(tmp_path)
    one.ask("next", "--id", "t", "--docs", "plan")
    for words in (("continuous-session", "start"), ("task-loop", "next"), ("task-loop", "next", "--docs", "app1/docs")):
        assert one.refused(*words) == OPEN + hint("raymond task-loop record --docs plan")
    assert one.refused("task-loop", "next", "--docs", "plan").startswith(
        "error: an item is open: 1.1.1. Work in plan\n"
    )


def test_a_loop_that_lost_its_state_file_is_the_one_of_its_folder(tmp_path: Path) -> None:
    one = handed(tmp_path)
    (one.path / STATE).unlink()
    assert one.refused("task-loop", "next", at="app1").startswith("error: an item is open: 1.1.1. Work in app1/docs\n")
    (tmp_path / "link").symlink_to(one.path / "app1")
    assert one.refused("task-loop", "next", at="../link").startswith("error: an item is open: ")
    assert one.refused("task-loop", "next", "--docs", "app1/docs").startswith("error: an item is open: ")


def test_the_status_of_a_folder_without_a_loop_names_where_there_is_one(tmp_path: Path) -> None:
    one = handed(tmp_path)
    where = "task-loop t is in ../app1/docs: raymond -C ../app1 task-loop status\n"
    for verb in ("status", "stop", "resume"):
        done = one.room.raymond("task-loop", verb, cwd=one.path / "app2")
        assert (done.returncode, done.stdout + done.stderr) == (0, f"no active task loop\n{where}")
    assert one.refused("task-loop", "record", at="app2") == f"error: no active task loop\nhint: {where}"
    assert one.ask("status", at="app2") == {"loop": "task-loop", "status": None, "state": None}
    assert one.ask("status", at="app1")["workflow_id"] == "t"


def test_a_loop_begins_beside_one_of_which_no_item_is_open(tmp_path: Path) -> None:
    one = handed(tmp_path)
    one.write({"app1/work.txt": "b\n"})
    one.ask("record", said=DONE, at="app1")
    assert one.ask("next", "--id", "s", at="app2")["item"]["title"] == "1.1.1. Work in app2/docs"
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
    assert one.ask("next", at="app2")["item"]["title"] == "1.1.1. Work in app2/docs"


def test_a_loop_in_a_worktree_keeps_no_other_from_the_checkout(tmp_path: Path) -> None:
    one = Folders(tmp_path)
    one.agent(f"touch $TEST_ROOM/../half\n{WAIT}echo b > work.txt; echo ITERATION_COMPLETE")
    with one.room.start("-C", "app1", "task-loop", "start", "--id", "t", "--pause", "0s", "--worktree") as live:
        until((tmp_path / "half").exists, "the agent works")
        assert one.ask("next", at="app1")["item"]["title"] == "1.1.1. Work in app1/docs"
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
    one = handed(tmp_path / "open")
    assert not runs.has_ended(one.room.project.run("t"))
    assert [there.id for there in unended.every(one.room.project)] == ["t"]
