"""A check that is green only because what decides it changed: asked, reviewed, accepted or rejected by a person."""

import json
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from raymond.machine.events import AgentPaused, GateEnded, ReviewEnded, SealEnded
from running import Ran, Room, until
from typist import Typist

CHECK = "grep -q right answer.txt || { echo expected right; exit 1; }\n"
FLOW = {
    "START.md": "---\ngate: sh tests/check.sh\ngate_reruns: 0\n---\nWrite the answer, then <result>done</result>.\n",
    "workflow.yaml": "backend: mine\n",
}


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    """A project with a check; the agent does what the script `does` says, with the prompt on its standard input."""
    room = Room(tmp_path)
    (room.path / "tests").mkdir()
    (room.path / "tests" / "check.sh").write_text(CHECK)
    (room.path / "answer.txt").write_text("wrong\n")
    agent(room, "echo true > tests/check.sh; echo I need it so.")
    room.settings(f'[backends.mine]\ncommand = ["bash", "{room.path}/agent"]\ncost = 0.01\n')
    yield room
    room.clear()


def agent(room: Room, does: str) -> None:
    program = room.path / "agent"
    program.write_text(f"cat >> prompts\n{does}\necho '<result>done</result>'\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def reviewed(room: Room, *args: str) -> Ran:
    ran = room.command(FLOW, *args)
    assert (ran.code, ran.out) == (3, ""), ran.err
    return ran


@pytest.mark.slow
def test_the_agent_is_asked_why_and_then_a_person_is(room: Room) -> None:
    ran = reviewed(room)
    assert [event.verdict for event in ran.all(GateEnded)] == ["review", "review"]
    assert [event.told for event in ran.all(GateEnded)] == [True, False]
    [pause] = ran.all(AgentPaused)
    assert (pause.kind, pause.reason.partition(":")[0]) == ("review", "green only with the agent's tests/check.sh")
    prompts = (room.path / "prompts").read_text("utf-8")
    assert "- changed tests/check.sh\n" in prompts
    assert "expected right\n" in prompts
    assert ran.lines[-1] == "next:   raymond review r"
    assert "1 to review" in room.raymond("list").stdout
    assert room.raymond("status", "r").stdout.splitlines()[-1] == "next: raymond review r"
    shown = room.raymond("review").stdout
    assert "the agent says:\n  | I need it so.\n" in shown
    assert "  | -grep -q right answer.txt" in shown
    assert "  | +true\n" in shown
    assert "what it printed with the sealed files:\n  | expected right\n" in shown
    [one] = json.loads(room.raymond("review", "r", "--json").stdout)
    assert (one["verdict"], one["changes"]) == ("review", ["changed tests/check.sh"])


@pytest.mark.slow
def test_every_gate_names_what_was_checked(room: Room) -> None:
    ran = reviewed(room)
    [sealed] = ran.all(SealEnded)
    assert len(sealed.seal) == 64
    assert {event.seal for event in ran.all(GateEnded)} == {sealed.seal}
    assert {len(event.tree) for event in ran.all(GateEnded)} == {40}


@pytest.mark.slow
def test_a_person_accepts_what_is_on_the_screen_and_the_run_completes(room: Room) -> None:
    reviewed(room)
    refused = room.raymond("accept", "r")
    assert (refused.returncode, refused.stderr.splitlines()[0]) == (
        2,
        "error: a change of what decides a check is accepted on a terminal, where it can be seen",
    )
    person = Typist(room, "accept", "r")
    assert "+true" in person.sees("accept this change")
    person.type("n\r")
    assert person.end() == 3
    person = Typist(room, "accept", "r")
    person.sees("accept this change")
    person.type("y\r")
    assert person.end() == 0
    done = room.raymond("wait", "r") if room.folder("r").joinpath("driver.json").exists() else None
    assert done is None or done.returncode == 0
    until(lambda: room.raymond("status", "r").stdout.startswith("r: completed") or None, "the end of the run")
    assert [event.accepted for event in room.events() if isinstance(event, ReviewEnded)] == [True]
    [*_, last] = [event for event in room.events() if isinstance(event, GateEnded)]
    assert (last.verdict, last.changes) == ("passed", ["changed tests/check.sh"])


@pytest.mark.slow
def test_what_changed_after_the_review_is_not_what_was_accepted(room: Room) -> None:
    reviewed(room)
    person = Typist(room, "accept", "r", "--no-resume")
    person.sees("accept this change")
    person.type("y\r")
    assert person.end() == 0
    (room.path / "tests" / "check.sh").write_text("true # and more\n")
    again = room.resume()
    assert again.code == 3, again.err
    assert again.all(GateEnded)[-1].verdict == "review"


@pytest.mark.slow
def test_a_person_rejects_it_and_the_agent_hears_why(room: Room) -> None:
    reviewed(room)
    agent(room, f"cp {room.path}/kept tests/check.sh; echo right > answer.txt")
    (room.path / "kept").write_text(CHECK)
    person = Typist(room, "reject", "r", "main", "the check stays")
    assert person.end() == 0, person.said
    until(lambda: room.raymond("status", "r").stdout.startswith("r: completed") or None, "the end of the run")
    assert "a person rejected the change: the check stays" in (room.path / "prompts").read_text("utf-8")


@pytest.mark.slow
def test_a_rejection_shows_the_change_and_asks_for_a_reason(room: Room) -> None:
    reviewed(room)
    agent(room, f"cp {room.path}/kept tests/check.sh; echo right > answer.txt")
    (room.path / "kept").write_text(CHECK)
    person = Typist(room, "reject", "r", columns=200)
    shown = person.sees("why\\? The agent is told; Ctrl-C rejects nothing: ")
    assert "tests/check.sh" in shown
    person.type("the check stays\n")
    assert person.end() == 0, person.said
    until(lambda: room.raymond("status", "r").stdout.startswith("r: completed") or None, "the end of the run")
    assert "a person rejected the change: the check stays" in (room.path / "prompts").read_text("utf-8")


@pytest.mark.slow
def test_a_reason_needs_no_agent_and_a_misspelt_agent_is_no_reason(room: Room) -> None:
    reviewed(room)
    done = room.raymond("reject", "r", "mian")
    assert done.stderr == (
        "error: there is no agent `mian` whose work waits for a review\n"
        "hint: if that is the reason: raymond reject r main mian\n"
    )
    agent(room, f"cp {room.path}/kept tests/check.sh; echo right > answer.txt")
    (room.path / "kept").write_text(CHECK)
    assert Typist(room, "reject", "r", "the check stays").end() == 0
    until(lambda: room.raymond("status", "r").stdout.startswith("r: completed") or None, "the end of the run")
    assert "a person rejected the change: the check stays" in (room.path / "prompts").read_text("utf-8")


@pytest.mark.slow
def test_nobody_but_a_person_decides_or_goes_around_it(room: Room) -> None:
    reviewed(room)
    done = room.raymond("reject", "r", "main", "no")
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        2,
        "error: the work of main waits for the review of a person, which has to be typed on a terminal",
    )
    for way in (("--goto", "START"), ("--result", "x"), ("--give-up",)):
        done = room.raymond("resume", "r", "--agent", "main", *way)
        assert done.returncode == 2, way
    again = room.resume()
    assert again.code == 3, "it waits on"
    assert not again.all(ReviewEnded)


@pytest.mark.slow
def test_what_an_agent_has_started_is_no_person_whatever_terminal_it_has(room: Room) -> None:
    reviewed(room)
    refused = "error: `accept` was asked for by what claude has started"
    inside = Typist(room, "accept", "r", CLAUDECODE="1")
    assert inside.end() == 2
    assert refused in inside.said
    # And where it has cleared that away.
    script = f"exec -a claude bash -c '\"$0\" -m raymond accept r; exit $?' {sys.executable}"
    below = Typist(room, program=["bash", "-c", script])
    assert below.end() == 2
    assert refused in below.said


@pytest.mark.slow
def test_changes_can_be_accepted_in_advance(room: Room) -> None:
    ran = room.command(FLOW, "--allow-test-edits")
    assert (ran.code, ran.out) == (0, "done\n"), ran.err
    assert ran.all(GateEnded)[-1].changes == ["changed tests/check.sh"]
    assert "; accepted in advance, green only with the agent's tests/check.sh" in ran.err
    assert "also as sealed" not in ran.err


@pytest.mark.slow
def test_on_review_names_the_state_that_decides(room: Room) -> None:
    files = {**FLOW, "SEE.sh": 'echo "<result>$RAYMOND_ERROR</result>"'}
    files["START.md"] = files["START.md"].replace("gate_reruns", "on_review: SEE\ngate_reruns")
    ran = room.command(files)
    assert ran.code == 0, ran.err
    assert ran.out.startswith("green only with the agent's tests/check.sh: as sealed, ")


@pytest.mark.slow
def test_others_are_told_once_that_something_waits(room: Room) -> None:
    told = room.path.parent / "home"
    reviewed(room, "--notify", "cat > part.$$ && mv part.$$ told.$$")
    until(lambda: [*told.glob("told.*")] or None, "a notification")
    [review] = [json.loads(path.read_text("utf-8")) for path in told.glob("told.*")]
    assert review["event"] == "review", "and not that the run is paused for the same reason"
    assert review["text"].startswith("look at it with: raymond review r\n")
    assert review["why"].startswith("green only with the agent's tests/check.sh")


@pytest.mark.slow
def test_a_check_that_was_red_before_the_work_says_so(room: Room) -> None:
    agent(room, 'grep -q "in the same way" prompts && echo right > answer.txt')
    ran = room.command(FLOW, "--red-first")
    assert (ran.code, ran.out) == (0, "done\n"), ran.err
    [sealed] = ran.all(SealEnded)
    assert re.fullmatch(r"`sh tests/check.sh` ended with exit code 1 \[[0-9a-f]{12}\]", sealed.before)
    assert [event.as_before for event in ran.all(GateEnded)] == [True, False]
    asked = (room.path / "prompts").read_text("utf-8")
    assert "ended with exit code 1 (it was red in the same way before you began)\n" in asked


@pytest.mark.slow
def test_another_failure_with_the_same_exit_code_is_not_the_same(room: Room) -> None:
    (room.path / "tests" / "check.sh").write_text("echo took 0.$RANDOM s; cat answer.txt; exit 1\n")
    agent(room, "test -e prompts && grep -q again prompts && echo other > answer.txt; echo again >> prompts")
    flow = {**FLOW, "START.md": FLOW["START.md"].replace("gate_reruns: 0", "gate_reruns: 0\ngate_tries: 1")}
    ran = room.command(flow, "--red-first")
    assert [event.as_before for event in ran.all(GateEnded)] == [True, False], ran.err


@pytest.mark.slow
@pytest.mark.parametrize(("does", "is_regression"), [("true", True), ("touch tests/test_new.sh", False)])
def test_a_check_that_was_green_before_the_work_shows_little(room: Room, does: str, is_regression: bool) -> None:
    (room.path / "answer.txt").write_text("right\n")
    agent(room, does)
    ran = room.command(FLOW, "--red-first")
    assert ran.code == 0, ran.err
    assert [event.as_before for event in ran.all(GateEnded)] == [is_regression]
    assert ("regression only: it was green before, and no test was added" in ran.err) == is_regression


@pytest.mark.slow
def test_a_variable_that_is_not_text_does_not_stop_a_gate(room: Room) -> None:
    room.environment["ODD"] = os.fsdecode(b"\xff")
    ran = room.command(FLOW, "--allow-test-edits")
    assert (ran.code, ran.out) == (0, "done\n"), ran.err


@pytest.mark.slow
def test_a_project_that_was_moved_is_checked_against_what_was_sealed(room: Room) -> None:
    reviewed(room)
    person = Typist(room, "accept", "r", "--no-resume")
    person.sees("accept this change")
    person.type("y\r")
    assert person.end() == 0
    there = room.path / "there"
    shutil.copytree(room.path / "tests", there / "tests")
    (there / "tests" / "check.sh").write_text("exit 0 # other than what was shown\n")
    moved = room.raymond("resume", "r", "--cd", str(there))
    assert moved.returncode == 3, moved.stderr
    shown = room.raymond("review", "r", cwd=there).stdout
    assert "  | -grep -q right answer.txt" in shown
    assert "  | +exit 0 # other than what was shown\n" in shown
