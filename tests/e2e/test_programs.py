"""One workflow, three programs: Claude Code, Codex and one of the user's own do the same, and the doctor knows them."""

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.conftest import Coder, Desk
from e2e.model import MISSING, Answer, Mute, Script, Text, Tool, program
from e2e.responses import MISSING as NO_CODEX
from e2e.responses import Responses, codex_environment
from raymond.machine.events import (
    AgentCalled,
    AgentEnded,
    AgentMoved,
    AgentReturned,
    AgentStarted,
    StepFinished,
    StepInterrupted,
    StepRefused,
    WaitEnded,
    WaitStarted,
)
from raymond.store import journal
from running import GO, Ran, Room, alive, until

pytestmark = pytest.mark.e2e
needs_claude = pytest.mark.skipif(program("claude") is None, reason=MISSING)
needs_codex = pytest.mark.skipif(program("codex") is None, reason=NO_CODEX)

FILES = {
    "START.md": "prompt START.",
    "CHECK.sh": "echo '<call return=\"AFTER\">SUB</call>'",
    "SUB.md": "prompt SUB.",
    "AFTER.md": "prompt AFTER. {{result}}",
    "WORK.md": "prompt WORK. {{input}}",
    "END.md": "prompt END.",
}
REPLIES = {
    "could not act on": "<result>sub</result>",
    "prompt START.": "<goto>CHECK</goto>",
    "prompt SUB.": "I forgot to say where.",
    "prompt AFTER. sub": '<fork input="a">WORK</fork><fork input="b">WORK</fork><wait>END</wait>',
    "prompt WORK. a": "<result>one</result>",
    "prompt WORK. b": "<result>two</result>",
    "prompt END.": "<result>done</result>",
}
OWN = f"""\
import sys
prompt = sys.stdin.read()
print(next(reply for piece, reply in {REPLIES!r}.items() if piece in prompt))
"""
SCRIPT: dict[str, Answer] = {piece: Text(reply) for piece, reply in REPLIES.items()}
FLOW = (AgentStarted, AgentMoved, AgentCalled, AgentReturned, WaitStarted, WaitEnded, AgentEnded, StepRefused)


def transitions(ran: Ran) -> dict[str, list[tuple[str, str, str]]]:
    """What each agent did, in order: agents that run at once are told apart."""
    done: dict[str, list[tuple[str, str, str]]] = {}
    for event in ran.events:
        if isinstance(event, FLOW):
            said = getattr(event, "tag", "") or getattr(event, "result", "") or getattr(event, "input", "") or ""
            done.setdefault(event.agent, []).append((type(event).__name__, getattr(event, "state", ""), said))
    return done


EXPECTED = {
    "main": [
        ("AgentStarted", "START.md", ""),
        ("AgentMoved", "CHECK.sh", "goto"),
        ("AgentCalled", "SUB.md", "call"),
        ("StepRefused", "", ""),
        ("AgentReturned", "AFTER.md", "sub"),
        ("WaitStarted", "END.md", ""),
        ("WaitEnded", "END.md", ""),
        ("AgentEnded", "", "done"),
    ],
    "main_work1": [("AgentStarted", "WORK.md", "a"), ("AgentEnded", "", "one")],
    "main_work2": [("AgentStarted", "WORK.md", "b"), ("AgentEnded", "", "two")],
}


def same(ran: Ran) -> None:
    """It went as it should, whatever program it was."""
    assert (ran.code, ran.out) == (0, "done\n")
    assert transitions(ran) == EXPECTED


@needs_claude
def test_claude(desk: Callable[..., Desk]) -> None:
    ran = desk(SCRIPT).claude(FILES)
    same(ran)
    assert ran.lines[-3].startswith("cost:   $0.0056 in ")


@needs_codex
def test_codex_branches_and_its_tokens_are_priced(coder: Callable[[Script], Coder]) -> None:
    room = coder(SCRIPT)
    done = room.raymond(*room.begin(FILES))
    ran = Ran(room, "r", done.returncode, done.stdout, done.stderr)
    same(ran)
    started = ["prompt START.", "<goto>CHECK</goto>"]
    assert room.saw("prompt SUB.") == [*started, "prompt SUB."]
    assert room.saw("I could not act on your reply")[:4] == [*started, "prompt SUB.", "I forgot to say where."]
    assert room.saw("prompt AFTER.") == [*started, "prompt AFTER. sub"]
    assert room.saw("prompt WORK. a") == ["prompt WORK. a"]
    assert room.saw("prompt END.") == [*started, "prompt AFTER. sub", REPLIES["prompt AFTER. sub"], "prompt END."]
    assert len(set(room.threads())) == len(room.threads()) == len(room.server.requests) == 7
    assert sorted(room.threads()) == sorted(question.session for question in room.server.requests)
    turn = 100 * 2.5e-6 + 20 * 15e-6
    assert [event.cost for event in ran.all(StepFinished) if event.cost] == [pytest.approx(turn)] * 6
    assert ran.run.cost == pytest.approx(7 * turn)
    assert ran.run.estimated
    assert ran.lines[-4].startswith("cost:   ~$0.0039 in ")
    assert "total ~$0.0039" in ran.err


def test_a_program_of_ones_own(tmp_path: Path) -> None:
    room = Room(tmp_path)
    (room.path / "own.py").write_text(OWN, "utf-8")
    command = json.dumps([sys.executable, str(room.path / "own.py")])
    room.settings(f"[backends.mine]\ncommand = {command}\ncost = 0.02\n")
    ran = room.command(FILES, "--backend", "mine")
    same(ran)
    assert ran.run.cost == pytest.approx(7 * 0.02)
    room.nothing_runs()


# --- codex and `kill -9`


HELD = {"START.md": "prompt START.", "NEXT.md": "prompt NEXT.", "END.md": "prompt END."}
"""A workflow whose second turn waits for the test."""


@needs_codex
@pytest.mark.parametrize("how", ["followed", "from the spool", "recalled"])
def test_a_turn_of_codex_outlives_its_driver_and_is_paid_once(coder: Callable[[Script], Coder], how: str) -> None:
    held = Mute(text="<goto>END</goto>")
    room = coder([Text("<goto>NEXT</goto>"), held, Text("<result>done</result>")])
    with room.start(*room.begin(HELD)) as live:
        held.gate.meet()
        # The id is in the journal while the turn still runs: without it nothing could be recalled.
        until(lambda: len(room.threads()) == 2, "the id of the second conversation")
        assert room.threads()[1] == room.server.requests[1].session
        room.kill(live)
        leader = room.leader("2.1")
        if how == "followed":
            with room.start("resume", "r") as resumed:
                resumed.sees("run resumed")
                assert alive(leader)
                held.gate.open()
                ran = resumed.wait()
        else:
            held.gate.open()
            until(lambda: not alive(leader), "the end of the turn")
            if how == "recalled":
                shutil.rmtree(room.project.run("r").spool)
            ran = room.resume()
        room.nothing_runs()
    assert (ran.code, ran.out) == (0, "done\n")
    assert [question.prompt for question in room.server.requests] == ["prompt START.", "prompt NEXT.", "prompt END."]
    assert room.saw("prompt END.") == [
        "prompt START.",
        "<goto>NEXT</goto>",
        "prompt NEXT.",
        "<goto>END</goto>",
        "prompt END.",
    ]
    assert not ran.all(StepInterrupted)
    first, second, third = [event.cost for event in ran.all(StepFinished)]
    assert first == second == third > 0
    assert journal.read(room.project.run("r")).run.unpriced == 0


@needs_codex
def test_what_a_tool_of_codex_leaves_running_is_ended_with_the_run(coder: Callable[[Script], Coder]) -> None:
    stays = {"cmd": f"echo $$ > left; {GO}", "yield_time_ms": 250}
    room = coder([Tool("exec_command", stays), Text("<result>done</result>")])
    ran = room.raymond(*room.begin({"START.md": "prompt START."}, "--dangerously-skip-permissions"))
    assert (ran.returncode, ran.stdout) == (0, "done\n")
    assert "Process running with session ID" in room.server.requests[1].results[0]
    assert (room.path / "left").read_text("ascii").strip().isdigit()
    room.nothing_runs()


# --- the doctor


@needs_claude
@needs_codex
def test_the_doctor_lists_every_program_and_asks_each_a_short_question(
    desk: Callable[..., Desk], tmp_path: Path
) -> None:
    room = desk(lambda request: Text("ready"))
    with Responses(lambda request: Text("ready")) as other:
        claude, codex = program("claude"), program("codex")
        room.environment = codex_environment(room.user, other) | room.environment
        room.environment["PATH"] = f"{os.path.dirname(codex or '')}:{room.environment['PATH']}"
        room.settings('[backends.mine]\ncommand = ["cat"]\n')
        found = room.raymond("doctor", "--json")
        about = {one["what"]: one for one in json.loads(found.stdout)}
        assert found.returncode == 0
        assert about["claude"]["found"] == (
            f"2.1.325 (Claude Code) at {claude}; conversations branch, and are deleted after 30 days; "
            "paid by: the key in ANTHROPIC_API_KEY"
        )
        assert about["codex"]["found"] == (
            f"codex-cli 0.166.0 at {codex}; conversations branch; paid by: the key in OPENAI_API_KEY"
        )
        assert about["mine"]["found"].endswith("cat; conversations are not kept; paid by: whoever that program charges")
        assert all(about[name]["ok"] for name in ("claude", "codex", "mine", "scripted"))
        assert (room.server.requests, other.requests) == ([], []), "to look costs nothing"
        for name, server in (("claude", room.server), ("codex", other)):
            probe = room.raymond("doctor", "--probe", "--backend", name)
            assert probe.returncode == 0, probe.stdout
            assert f"ok   probe: {name} answered after " in probe.stdout
            assert probe.stdout.endswith(": ready\n")
            assert [one.prompt for one in server.requests] == ["Reply with the single word: ready"]
        assert other.others == []
    room.nothing_runs()
