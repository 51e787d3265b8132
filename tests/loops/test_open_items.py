"""An item that is open in a checkout keeps every other loop from working there, whoever was at it."""

import signal
from pathlib import Path

import pytest

from looping import WAIT, Night
from planned import BOTH, Planned
from running import until
from typist import Typist

HERE = ("--workspace", "here")
WAYS = (
    ("continuous-session", "start", *HERE),
    ("story-loop", "start", *HERE),
    ("ralph", "PROMPT.md", *HERE),
)
OPEN = "t was cut off in the middle of an item: 1.4.1. Write the answer"
HINT = "hint: raymond task-loop resume continues it, raymond cancel t ends it"


def kill(night: Night, *command: str, first: str = "") -> None:
    """A loop that is killed while its agent works; with `first`, what one does for items that are not `Write the other`."""
    begin = f"grep -q 'Write the other' \"$PROMPT\" || {{ {first}; exit; }}\n" if first else ""
    night.agent(f"{begin}touch $TEST_ROOM/../half\n{WAIT}{BOTH}")
    with night.room.start(*command, "--pause", "0s") as live:
        until((night.path.parent / "half").exists, "the agent works")
        live.signal(signal.SIGKILL)
        live.process.wait()
        night.room.clear()
    (night.path.parent / "go").touch()


def cut_off(path: Path) -> Planned:
    """A loop over tasks that was killed while its agent worked in the checkout."""
    night = Planned(path)
    night.write({"PROMPT.md": "Do it.\n"})
    night.commit("prompt")
    kill(night, "task-loop", "start", "--id", "t", *HERE)
    night.agent(BOTH)
    return night


@pytest.mark.slow
def test_no_loop_starts_in_a_checkout_while_another_has_an_open_item_there(tmp_path: Path) -> None:
    night = cut_off(tmp_path)
    before = night.git("for-each-ref")
    for command in WAYS:
        done = night.room.raymond(*command)
        assert (done.returncode, OPEN in done.stderr, HINT in done.stderr) == (2, True, True), done.stderr
    assert night.git("for-each-ref") == before
    assert night.tasks(verb="resume").code == 0
    assert night.stories("--id", "s", *HERE).code == 0, "the item is not open any more"


@pytest.mark.slow
def test_a_loop_that_paused_waits_for_the_open_item_of_another(tmp_path: Path) -> None:
    night = Planned(tmp_path, "echo try >> tries.txt; echo ITERATION_COMPLETE")
    paused = night.stories("--id", "s", "--attempts", "1", "--pause-on-fail", *HERE)
    assert paused.code == 3, "no item of it is open"
    kill(night, "task-loop", "start", "--id", "t", *HERE)
    for command in (("story-loop", "resume"), ("resume", "s")):
        done = night.room.raymond(*command)
        assert (done.returncode, OPEN in done.stderr) == (2, True), done.stderr


@pytest.mark.slow
def test_a_loop_that_works_apart_begins_beside_an_open_item(tmp_path: Path) -> None:
    night = cut_off(tmp_path)
    before = (night.git("rev-parse", "HEAD"), night.git("status", "--porcelain"))
    assert night.stories("--id", "s").code == 0
    assert (night.git("rev-parse", "HEAD"), night.git("status", "--porcelain")) == before
    assert night.tasks(verb="resume").code == 0


@pytest.mark.slow
@pytest.mark.parametrize("is_killed", [True, False])
def test_no_story_is_added_where_a_loop_works(tmp_path: Path, is_killed: bool) -> None:
    night = Planned(tmp_path, f"touch $TEST_ROOM/../half\n{WAIT}{BOTH}")
    (tmp_path / "fix_plan.md").write_text("- [ ] Handle empty input\n", "utf-8")
    files = [night.path / one for one in ("docs/prd.md", "docs/prd-status.json")]
    before = [one.read_text("utf-8") for one in files]
    adding = ("prd", "import", "../fix_plan.md", "--yes", "--verify", "true")
    with night.room.start("task-loop", "start", "--id", "t", "--pause", "0s", *HERE) as live:
        until((tmp_path / "half").exists, "the agent works")
        if is_killed:
            live.signal(signal.SIGKILL)
            live.process.wait()
        for command in (adding, ("prd", "status-init", "--yes")):
            done = night.room.raymond(*command)
            assert done.returncode == 2, done.stderr
            assert "a task-loop works in this checkout: t" in done.stderr
        assert [one.read_text("utf-8") for one in files] == before
        (tmp_path / "go").touch()
        if not is_killed:
            live.process.wait()
    night.room.clear()
    if is_killed:
        assert night.tasks(verb="resume").code == 0
    done = night.room.raymond(*adding)
    assert done.returncode == 0, done.stderr
    assert "Handle empty input" in files[0].read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["accept", "reject"])
def test_what_was_set_aside_is_decided_while_an_item_is_open(tmp_path: Path, verb: str) -> None:
    night = Night(tmp_path, "1. [VERIFY: sh check.sh] Write the answer\n2. [VERIFY: sh two.sh] Write the other\n")
    night.write({"two.sh": "grep -q 7 two.txt\n"})
    night.commit("second check")
    kill(night, "continuous-session", "start", "--id", "n", first="echo true > check.sh; echo ITERATION_COMPLETE")
    if verb == "accept":
        person = Typist(night.room, "accept", "n")
        person.sees("commit this")
        person.type("y\n")
    else:
        person = Typist(night.room, "reject", "n", "1", "not so")
    assert person.end() == 0
    assert (night.text("check.sh") == "true\n") == (verb == "accept")
    night.agent("echo 7 > two.txt; echo 42 > answer.txt; echo ITERATION_COMPLETE")
    assert "- Write the other (passed" in night.loop(verb="resume").out
    assert (night.text("check.sh") == "true\n") == (verb == "accept")
