"""`kill -9` while a tool of the real Claude Code runs: nothing is lost, and nothing is paid twice in silence."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from e2e.conftest import Desk
from e2e.model import MISSING, Mute, Text, Tool, program, results
from raymond.machine.events import StepFinished, StepInterrupted
from raymond.machine.prices import UNKNOWN_TURN
from raymond.machine.prompts import INTERRUPTED
from running import GO, Live, alive, until

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(program("claude") is None, reason=MISSING)]

TURN = 0.0008
"""Dollars that one answer of the model costs."""
WAITS = Tool("Bash", {"command": f"echo $$ > tool; {GO}; echo gone on"})
FILES = {"START.md": "prompt START", "WORK.md": "prompt WORK", "END.md": "prompt END"}
BEFORE = [("user", "prompt START"), ("assistant", "<goto>WORK</goto>")]


@pytest.fixture
def again() -> Mute:
    """The answer to the turn that runs again; it waits for the test."""
    return Mute(text="<goto>END</goto>")


@pytest.fixture
def room(desk: Callable[..., Desk], again: Mute) -> Desk:
    """The second turn uses a tool that waits for the test."""
    return desk(
        {
            "prompt START": Text("<goto>WORK</goto>"),
            INTERRUPTED: again,
            "prompt WORK": [WAITS, Text("<goto>END</goto>")],
            "prompt END": Text("<result>done</result>"),
        }
    )


@contextmanager
def at_work(room: Desk) -> Iterator[Live]:
    """Raymond, while the tool runs."""
    with room.start(*room.begin(FILES, "--allow-tool", "Bash")) as live:
        until(lambda: (room.path / "tool").exists() and tool(room), "the tool")
        yield live


def tool(room: Desk) -> int:
    return int((room.path / "tool").read_text("ascii") or 0)


def ended_alone(room: Desk) -> None:
    """Let the turn end while nobody looks on."""
    leader = room.leader("2.1")
    room.go()
    until(lambda: not alive(leader), "the end of the turn")


def asked(room: Desk) -> list[str]:
    """What each question to the model was about."""
    return [request.prompt + "".join(f" {one}" for one in results(request)[-1:]) for request in room.server.requests]


ONCE = ["prompt START", "prompt WORK", "prompt WORK gone on", "prompt END gone on"]


def test_resumed_at_once_the_turn_is_followed_and_paid_once(room: Desk) -> None:
    with at_work(room) as live:
        room.kill(live)
        leader = room.leader("2.1")
        with room.start("resume", "r") as resumed:
            resumed.sees("run resumed")
            assert alive(leader)
            assert alive(tool(room))
            room.go()
            ran = resumed.wait()
    assert (ran.code, ran.out) == (0, "done\n")
    assert asked(room) == ONCE
    assert not ran.all(StepInterrupted)
    assert (round(ran.run.cost, 6), ran.run.estimated) == (4 * TURN, False)
    room.nothing_runs()


def test_resumed_after_the_turn_has_ended_the_reply_comes_from_the_spool(room: Desk) -> None:
    with at_work(room) as live:
        room.kill(live)
        ended_alone(room)
        ran = room.resume()
    assert (ran.code, ran.out) == (0, "done\n")
    assert asked(room) == ONCE
    assert (round(ran.run.cost, 6), ran.run.estimated) == (4 * TURN, False)


def test_when_the_spool_is_gone_the_reply_comes_from_the_session_and_its_cost_is_estimated(room: Desk) -> None:
    with at_work(room) as live:
        room.kill(live)
        ended_alone(room)
        shutil.rmtree(room.project.run("r").spool)
        ran = room.resume()
    assert (ran.code, ran.out) == (0, "done\n")
    assert asked(room) == ONCE
    assert [(event.cost, event.estimated) for event in ran.all(StepFinished)] == [
        (TURN, False),
        (UNKNOWN_TURN, True),
        (TURN, False),
    ]
    assert "main WORK.md -> END.md (goto) ~$0.50 total ~$0.50" in ran.lines
    assert ran.lines[-4].startswith("cost:   ~$0.50 in ")


def test_when_everything_was_killed_the_step_runs_again_from_the_same_conversation_and_both_costs_count(
    room: Desk, again: Mute
) -> None:
    with at_work(room) as live:
        room.kill(live)
        leader, orphan = room.leader("2.1"), tool(room)
        os.kill(leader, signal.SIGKILL)
        until(lambda: not alive(leader), "the end of the program")
        assert alive(orphan), "a tool outlives its program: else this proves nothing"
        with room.start("resume", "r") as resumed:
            again.gate.meet()
            assert not alive(orphan), "it could still work against the turn that runs again"
            again.gate.open()
            ran = resumed.wait()
            room.nothing_runs()
    assert (ran.code, ran.out) == (0, "done\n")
    assert asked(room) == ["prompt START", "prompt WORK", f"{INTERRUPTED}\n\nprompt WORK", "prompt END"]
    assert room.conversation("WORK") == [*BEFORE, ("user", "prompt WORK")]
    assert room.conversation("WORK", visit=2) == [*BEFORE, ("user", f"{INTERRUPTED}\n\nprompt WORK")]
    assert [(event.step, event.cost, event.estimated) for event in ran.all(StepInterrupted)] == [
        (2, UNKNOWN_TURN, True)
    ]
    assert (round(ran.run.cost, 6), ran.run.estimated) == (round(3 * TURN + UNKNOWN_TURN, 6), True)
    assert len({turn.session for turn in room.turns()}) == 4


def test_resume_with_restart_ends_the_turn_and_its_tool_and_runs_it_again(room: Desk, again: Mute) -> None:
    with at_work(room) as live:
        room.kill(live)
        leader, orphan = room.leader("2.1"), tool(room)
        with room.start("resume", "r", "--restart") as resumed:
            again.gate.meet()
            assert not alive(leader)
            assert not alive(orphan)
            again.gate.open()
            ran = resumed.wait()
    assert ran.out == "done\n"
    assert [event.step for event in ran.all(StepInterrupted)] == [2]
    assert room.conversation("WORK", visit=2) == [*BEFORE, ("user", f"{INTERRUPTED}\n\nprompt WORK")]
