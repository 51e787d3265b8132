"""Several loops of one repository, each with documents of its own: none takes another for itself, or works over it."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from folders import Folders
from looping import QUEUE, WAIT, Night
from raymond.control import runs
from raymond.loops import finding
from running import until

pytestmark = pytest.mark.slow
STATE = "app1/docs/.task-loop-state.json"
HERE = ("--workspace", "here")
OPEN = "error: t was cut off in the middle of an item: 1.1.1. Work in app1/docs\n"


def cut_off(path: Path, *flags: str) -> Folders:
    """An item of app1 is open: its loop was killed while its agent worked."""
    one = Folders(path)
    one.write(
        {"app2/docs/session_logs/20250117_0900_session.md": f"# S\n\n## Next Steps\n\n{QUEUE}", "P.md": "Do it.\n"}
    )
    one.commit("queue")
    kill(one, "app1", *flags)
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
    return done.returncode == 0 and "completed: every open item was tried" in done.stdout


def hint(command: str) -> str:
    return f"hint: {command} continues it, raymond cancel t ends it\n"


@pytest.mark.parametrize("is_lost", ["", "gone", "broken", "copied"])
def test_no_loop_works_over_the_open_item_of_another_folder(tmp_path: Path, is_lost: str) -> None:
    one = cut_off(tmp_path, *HERE)
    if is_lost == "gone":
        (one.path / STATE).unlink()
    elif is_lost == "broken":
        (one.path / STATE).write_text("{", "utf-8")
    elif is_lost == "copied":
        shutil.copy(one.path / STATE, one.path / "app2/docs")
    before, branch = one.git("for-each-ref"), one.git("branch", "--show-current")
    for words in (
        ("continuous-session", "start"),
        ("task-loop", "start", "--yes"),
        ("story-loop", "start"),
        ("ralph", "../P.md", "--gate", "true"),
    ):
        said = one.refused(*words, *HERE, at="app2")
        assert said.endswith(OPEN + hint("raymond -C ../app1 task-loop resume"))
    (tmp_path / "stories.md").write_text("- [ ] Handle empty input\n", "utf-8")
    adding = ("prd", "import", "../stories.md", "--docs", "plan", "--yes", "--verify", "true")
    done = one.room.raymond(*adding)
    told = "error: a task-loop works in this checkout: t\nhint: raymond -C app1 task-loop status shows it\n"
    assert (done.returncode, done.stderr.endswith(told)) == (2, True), done.stderr
    assert (one.git("for-each-ref"), one.git("branch", "--show-current")) == (before, branch)
    assert completes(one, "app1", "resume", "--yes")
    assert completes(one, "app2", "start", "--pause", "0s", *HERE)


def test_no_loop_works_over_the_open_item_of_other_documents(tmp_path: Path) -> None:
    one = Folders(tmp_path)
    kill(one, ".", "--docs", "plan", *HERE)
    for words in (
        ("continuous-session", "start"),
        ("task-loop", "start"),
        ("task-loop", "start", "--docs", "app1/docs"),
    ):
        said = one.refused(*words, *HERE)
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
    flags = ("--pause", "0s", "--attempts", "1", "--pause-on-fail")
    assert one.room.raymond("-C", "app1", "task-loop", "start", "--id", "t", *flags).returncode == 3
    one.agent("echo b c >> work.txt; echo ITERATION_COMPLETE")
    assert completes(one, "app2", "start", "--id", "s", "--pause", "0s")
    assert one.ask("status", at="app1")["workflow_id"] == "t"
    assert one.ask("status", at="app2")["workflow_id"] == "s"


def test_a_loop_that_was_killed_is_not_resumed_from_another_folder(tmp_path: Path) -> None:
    one = Folders(tmp_path)
    one.agent(f"touch $TEST_ROOM/../half\n{WAIT}echo ITERATION_COMPLETE")
    with one.room.start("-C", "app1", "task-loop", "start", "--id", "t", "--pause", "0s", *HERE) as live:
        until((tmp_path / "half").exists, "the agent works")
        told = "hint: raymond -C ../app1 task-loop status shows it, raymond -C ../app1 task-loop stop ends it "
        assert told in one.refused("task-loop", "start", "--yes", *HERE, at="app2")
        live.signal(signal.SIGKILL)
        live.process.wait()
        one.room.clear()
    said = one.refused("task-loop", "start", "--yes", *HERE, at="app2")
    assert said == OPEN + hint("raymond -C ../app1 task-loop resume")
    assert one.room.raymond("cancel", "t").returncode == 0
    one.agent("echo b c >> work.txt; echo ITERATION_COMPLETE")
    assert completes(one, "app2", "start", "--pause", "0s", *HERE)


def test_loops_of_other_folders_or_kinds_work_side_by_side_in_copies(tmp_path: Path) -> None:
    one = Folders(tmp_path)
    one.write({"app1/docs/session_logs/20250117_0900_session.md": "# S\n\n## Next Steps\n\n1. [NO-VERIFY] Do it\n"})
    one.commit("queue")
    only_first = f"mkdir $TEST_ROOM/../half 2> /dev/null && {WAIT}"
    one.agent(f"{only_first}echo b c >> work.txt; echo ITERATION_COMPLETE")
    with one.room.start("-C", "app1", "task-loop", "start", "--id", "t", "--pause", "0s") as live:
        until((tmp_path / "half").exists, "the agent works")
        assert "a task-loop is running here: t" in one.refused("task-loop", "start", "--yes", at="app1")
        assert completes(one, "app2", "start", "--id", "u", "--pause", "0s")
        done = one.room.raymond("-C", "app1", "continuous-session", "start", "--id", "v", "--pause", "0s")
        assert done.returncode == 0, done.stderr
        (tmp_path / "go").touch()
        assert live.process.wait() == 0, live.err
    assert [one.git("show", f"raymond/{id}:{path}") for id, path in PLACES] == ["b c\nb c", "b c\nb c", "b c"]
    assert one.git("status", "--porcelain") == ""


PLACES = (("t", "app1/work.txt"), ("u", "app2/work.txt"), ("v", "app1/work.txt"))


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
    assert [there.id for there in finding.open_loops(one.room.project)] == ["t"]
