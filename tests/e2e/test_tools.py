"""Tools of the real Claude Code: one that is stuck, one that takes its time, one that was refused."""

from collections.abc import Callable

import pytest

from e2e.conftest import Desk
from e2e.model import MISSING, Answer, Request, Text, Tool, program, results
from raymond.machine.events import AgentPaused, LimitsChanged, StepFailed, StepRefused
from raymond.machine.prices import UNKNOWN_TURN
from raymond.machine.prompts import BLOCKED, INTERRUPTED
from running import GO, alive

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(program("claude") is None, reason=MISSING)]

PROMPT = {"START.md": "prompt START"}
FINE = Text("<result>fine</result>")


def policy(*lines: str) -> dict[str, str]:
    return {"START.md": "\n".join(["---", *lines, "---", "prompt START"])}


# --- how long a tool may take


def test_a_tool_that_is_stuck_is_ended_with_its_turn_and_the_step_runs_again(desk: Callable[..., Desk]) -> None:
    stuck = f"echo $$ > tool; {GO}"
    room = desk({INTERRUPTED: FINE, "prompt START": Tool("Bash", {"command": stuck})})
    ran = room.claude(policy("tool_timeout: 2s"), "--allow-tool", "Bash")
    assert (ran.code, ran.out) == (0, "fine\n")
    (failed,) = ran.all(StepFailed)
    assert (failed.kind, failed.charged, failed.cost) == ("silent", True, UNKNOWN_TURN)
    assert failed.error == f"a tool ran for 2s without a sign of life (tool_timeout): Bash {stuck}"
    assert not alive(int((room.path / "tool").read_text("ascii")))
    room.nothing_runs()


def test_a_tool_may_be_quiet_for_longer_than_a_model(desk: Callable[..., Desk]) -> None:
    """It takes longer than `timeout`, and says nothing meanwhile: a limit that a start under load stays well below."""
    slow = """python3 -c 'import time; time.sleep(17); print("slept")'"""
    room = desk({"prompt START": [Tool("Bash", {"command": slow}), FINE]})
    ran = room.claude(policy("timeout: 15s", "tool_timeout: 60s"), "--dangerously-skip-permissions")
    assert (ran.code, ran.out) == (0, "fine\n")
    assert ran.all(StepFailed) == []
    assert results(room.server.requests[-1]) == ["slept"]


# --- what an agent may not do

DENIED = Tool("Bash", {"command": "make build 2>&1 | tail"})
FLAG = "--allow-tool 'Bash(make build:*)'"


@pytest.fixture
def room(desk: Callable[..., Desk]) -> Desk:
    """The agent tries to build until it has built."""

    def answer(request: Request) -> Answer:
        built = [result for result in results(request) if "built" in result]
        if built or request.call:
            return FINE
        return DENIED

    made = desk(answer)
    (made.path / "Makefile").write_text("build:\n\t@touch it-is-there\n\t@echo built\n", "utf-8")
    return made


def test_what_was_refused_is_said_at_once_in_the_status_and_at_the_end_with_the_flag_that_allows_it(room: Desk) -> None:
    ran = room.claude(PROMPT)
    assert (ran.code, ran.out) == (0, "fine\n")
    once = f"denied: Bash(make build:*) 1 time ({FLAG} would allow it)"
    at = ran.lines.index(f"main * was denied: Bash make build 2>&1 | tail ({FLAG} would allow it)")
    (done,) = [line for line in ran.lines if line.startswith("main done ")]
    assert at < ran.lines.index(done)
    assert ran.lines[-2:] == [once, "next:   raymond logs r"]
    assert once in room.raymond("status", "r").stdout.splitlines()
    assert not (room.path / "it-is-there").exists()


def test_who_wants_to_be_asked_allows_the_tool_and_it_runs_in_the_same_conversation(room: Desk) -> None:
    paused = room.claude(policy("on_denied: pause"))
    assert paused.code == 3
    (pause,) = paused.all(AgentPaused)
    assert pause == AgentPaused(agent="main", kind="denied", tools=["Bash(make build:*)"])
    assert "why:    1 agent paused, main: denied tools it needs: Bash(make build:*)" in paused.lines
    assert paused.lines[-1] == f"next:   raymond resume r {FLAG}"
    ran = room.resume("--allow-tool", "Bash(make build:*)")
    assert (ran.code, ran.out) == (0, "fine\n")
    assert (room.path / "it-is-there").exists()
    assert [event.allowed_tools for event in ran.all(LimitsChanged)] == [["Bash(make build:*)"]]
    (refused,) = ran.all(StepRefused)
    assert room.turns()[1].base == refused.session
    refusal, built = results(room.server.requests[-1])
    assert "requires approval" in refusal
    assert built == "built"
    assert ("user", BLOCKED) in room.conversation("START", visit=2)
