"""What was asked of a driver that froze and died: what the commands say about it, and what becomes of it."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from raymond.machine.events import AgentMoved, AgentPaused, RequestTaken
from raymond.machine.requests import Request
from raymond.store import inbox, journal
from running import GO, Ran, Room, alive, driver_of, until

pytestmark = pytest.mark.slow
HELD = {"START.sh": f"touch started; {GO}; echo '<result>done</result>'"}
CALLED = {
    "START.sh": "echo '<fork>HELD</fork><goto>CALLER</goto>'",
    "CALLER.sh": "echo '<function return=\"NEXT\">SUB</function>'",
    "SUB.sh": "exit 3",
    "NEXT.sh": 'echo "<result>next got $RAYMOND_RESULT</result>"',
    "HELD.sh": f"touch started; {GO}; echo '<result>held</result>'",
    "X.sh": "echo '<result>x</result>'",
    "Y.sh": "echo '<result>y</result>'",
}
ASKING = {
    "START.sh": "echo '<fork>ASK</fork><fork>HELD</fork><wait>END</wait>'",
    "ASK.sh": "echo '<ask next=\"END\">Shall I?</ask>'",
    "HELD.sh": CALLED["HELD.sh"],
    "END.sh": "echo '<result>end</result>'",
}
GONE = "was left for a driver that died"


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    """Where a driver has no socket: whatever is asked of it is left in its inbox."""
    room = Room(tmp_path, RAYMOND_PORTABLE="1")
    yield room
    room.clear()


def orphan(room: Room, files: dict[str, str], status: str, *left: Request) -> None:
    """Leave requests for a driver that is killed before it can look, once an agent has `status`."""
    assert room.raymond("run", room.flow(files), "--id", "r", "-d").returncode == 0
    folder = room.project.run("r")
    until((room.path / "started").exists, "the script")
    until(lambda: journal.read(folder).run.statuses.get(status), "the agent")
    driver = driver_of(folder)
    os.kill(driver, signal.SIGSTOP)
    for number, request in enumerate(left):
        path = inbox.leave(folder.inbox, request)
        os.utime(path, (number, number))
    os.kill(driver, signal.SIGKILL)
    until(lambda: not alive(driver), "the end of the driver")


def told(room: Room) -> list[str]:
    """What `status` says at its end, from the first line about what was left."""
    lines = room.raymond("status", "r").stdout.splitlines()
    return [line for line in lines if line.startswith(("left: ", "next: "))]


def taken(room: Room) -> list[tuple[str, str]]:
    return [(event.request, event.problem) for event in Ran(room, "r", 0, "", "").all(RequestTaken)]


def test_the_same_command_after_the_death_of_the_driver_is_obeyed_once(room: Room) -> None:
    """The driver was asked for it first, and its killing was what Raymond proposed."""
    orphan(room, CALLED, "failed", Request(id="left", kind="result", agent="main", text="fixed"))
    assert f"left: the result of main {GONE}; the next one obeys it" in told(room)
    room.go()
    done = room.raymond("resume", "r", "--agent", "main", "--result", "fixed")
    assert (done.returncode, done.stdout) == (0, "next got fixed\n")
    assert "result refused: too late: main was given a result first" in done.stderr
    assert os.listdir(room.project.run("r").inbox) == []


def test_what_is_asked_now_comes_after_what_was_left(room: Room) -> None:
    orphan(
        room,
        CALLED,
        "failed",
        Request(id="move", kind="move", agent="main", state="X"),
        Request(id="limits", kind="limits", budget=100.0, max_turns=7),
    )
    assert told(room)[:2] == [
        f"left: the move of main to X {GONE}; the next one obeys it",
        f"left: a change of limits (--budget 100 --max-turns 7) {GONE}; the next one obeys it",
    ]
    room.go()
    done = room.raymond("resume", "r", "--agent", "main", "--goto", "Y", "--budget", "1")
    assert done.returncode == 0, done.stderr
    assert [event.state for event in Ran(room, "r", 0, "", "").all(AgentMoved)] == ["CALLER.sh", "Y.sh"]
    limits = journal.read(room.project.run("r")).run.limits
    assert (limits.budget, limits.max_turns) == (1.0, 7)
    assert GONE not in done.stderr, "nothing is left that this would obey"


def test_whoever_continues_the_run_says_what_is_obeyed_and_what_is_refused(room: Room) -> None:
    orphan(
        room,
        CALLED,
        "failed",
        Request(id="0", kind="stop"),
        Request(id="1", kind="move", agent="main", state="X"),
        Request(id="2", kind="retry", agent="gone"),
        Request(id="3", kind="pause", agent="main_held1"),
    )
    why = "there is no agent gone left in r"
    assert told(room) == [
        f"left: the move of main to X {GONE}; the next one obeys it",
        f"left: the retry of gone {GONE}; the next one refuses it: {why}",
        f"left: a stop {GONE}; raymond stop r stops the run, a resume continues it",
        f"left: the pause of main_held1 {GONE}; the next one obeys it",
        "next: change SUB.sh, then: raymond resume r --latest",
    ]
    room.go()
    done = room.raymond("resume", "r")
    assert done.stderr.splitlines()[:5] == [
        f"what {GONE}:",
        "    | the move of main to X: obeyed now",
        f"    | the retry of gone: refused, {why}",
        "    | a stop: the run continues",
        "    | the pause of main_held1: obeyed now",
    ]
    assert taken(room) == [("0", ""), ("1", ""), ("2", why), ("3", "")]
    assert [event.state for event in Ran(room, "r", 0, "", "").all(AgentMoved)] == ["CALLER.sh", "X.sh"]
    assert told(room) == ["next: raymond resume r"]


def test_a_cancel_that_was_left_is_said_to_end_the_run_and_does(room: Room) -> None:
    orphan(room, ASKING, "asking", Request(id="left", kind="cancel"))
    left, ends = f"a cancel {GONE}", "raymond resume r ends it for good"
    assert told(room) == [f"left: {left}; the next one ends the run for good", "next: raymond cancel r"]
    [row] = json.loads(room.raymond("list", "--json").stdout)
    assert (row["status"], row["reason"]) == ("interrupted", left)
    for command in ("wait", "attach"):
        assert room.raymond(command, "r").stderr.splitlines()[-2:] == [
            f"left:   {left}; the next one ends the run for good",
            "next:   raymond cancel r",
        ]
    assert room.raymond("resume", "--all", "--yes").stderr == f"r is left out: {left}; {ends}\n"
    answered = room.raymond("answer", "r", "main_ask1", "yes")
    assert (answered.returncode, answered.stderr.splitlines()[-2:]) == (
        5,
        [f"{left}, so it was not continued: {ends}", "the answer is kept, nothing was started"],
    )
    assert f"\nr is stopped; {left}: {ends}\n" in room.raymond("stop", "r").stderr
    room.go()
    done = room.raymond("resume", "r")
    assert done.returncode == 1
    assert done.stderr.startswith(f"what {GONE}:\n    | a cancel: obeyed now\n")
    assert "\ncancelled: r after " in done.stderr


def test_a_cancel_that_anybody_may_have_left_is_said_to_be_put_aside_and_is(tmp_path: Path) -> None:
    room = Room(tmp_path)
    orphan(room, HELD, "running", Request(id="left", kind="cancel"))
    why = "the next one puts it aside, because it does not tell who it comes from; raymond cancel r ends the run"
    assert told(room) == [f"left: a cancel {GONE}; {why}", "next: raymond resume r"]
    [row] = json.loads(room.raymond("list", "--json").stdout)
    assert (row["status"], row["reason"]) == ("interrupted", "its process is gone")
    assert room.raymond("resume", "--all", "--dry-run").stdout == "r\n"
    room.go()
    done = room.raymond("resume", "r")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert "a request that asks for `cancel` and does not tell who it comes from was put aside: " in done.stderr
    assert GONE not in done.stderr


@pytest.mark.parametrize(("now", "flag"), [(False, ""), (True, " --now")])
def test_a_stop_that_was_left_is_told_as_it_was_asked_for(room: Room, now: bool, flag: str) -> None:
    orphan(room, HELD, "running", Request(id="left", kind="stop", now=now))
    left = f"a stop{flag} {GONE}"
    then = f"raymond stop r{flag} stops the run, a resume continues it"
    assert told(room) == [f"left: {left}; {then}", "next: raymond resume r"]
    [row] = json.loads(room.raymond("list", "--json").stdout)
    assert (row["status"], row["reason"]) == ("interrupted", left)
    for command in ("wait", "attach"):
        assert room.raymond(command, "r").stderr.splitlines()[-2:] == [
            f"left:   {left}; {then}",
            "next:   raymond resume r",
        ]
    out = f"r is left out: {left}; raymond resume r continues it\n"
    assert room.raymond("resume", "--all", "--yes").stderr == out
    assert room.raymond("stop", "r", *flag.split()).returncode == 0
    assert "left:" not in room.raymond("status", "r").stdout
    assert os.listdir(room.project.run("r").inbox) == []


def test_a_pause_that_was_left_is_taken_back_by_a_retry(room: Room) -> None:
    orphan(room, HELD, "running", Request(id="left", kind="pause", agent="main"))
    room.go()
    done = room.raymond("resume", "r", "--agent", "main", "--retry")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert [event.agent for event in Ran(room, "r", 0, "", "").all(AgentPaused)] == ["main"], "and tried again"
    assert os.listdir(room.project.run("r").inbox) == []


@pytest.mark.parametrize("kind", ["answer", "limits", "give_up"])
def test_status_tells_of_everything_that_was_left(room: Room, kind: Literal["answer", "limits", "give_up"]) -> None:
    given: dict[str, dict[str, Any]] = {
        "answer": {"agent": "main_ask1", "text": "yes"},
        "limits": {"allowed_tools": ["Bash"], "on_ask": "fail"},
        "give_up": {"agent": "main_ask1"},
    }
    words = {
        "answer": "the answer to main_ask1",
        "limits": "a change of limits (--allow-tool Bash --on-ask fail)",
        "give_up": "the request to give up main_ask1",
    }[kind]
    orphan(room, ASKING, "asking", Request(id="left", kind=kind, **given[kind]))
    assert told(room)[0] == f"left: {words} {GONE}; the next one obeys it"


def test_a_step_that_leaves_much_is_not_quoted_at_length(room: Room) -> None:
    many = [Request(id=f"n{number:02}", kind="retry", agent="x" * 5000) for number in range(15)]
    orphan(room, HELD, "running", *many)
    lines = told(room)
    assert lines[10] == "left: 5 more requests were left for a driver that died"
    assert max(map(len, lines)) < 300
