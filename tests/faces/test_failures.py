"""Agents that failed and that a wait collected: the run says so wherever somebody looks, and does not end as success."""

import json

import pytest

from builders import Play
from raymond.faces import documents, words
from raymond.faces.overview import run_lines
from raymond.faces.summary import ending, next_command
from raymond.views.status import exit_code
from running import Room

FILES = {"START.md": "", "A.md": "", "LATE.md": "", "BAD.md": "", "N.md": ""}
FORKS = "<fork f='a.py'>A</fork><fork f='b.py'>A</fork><fork f='c.py'>A</fork>"


def two_fail(wait: str) -> Play:
    play = Play(FILES)
    play.say(FORKS + wait)
    play.fail("setup", "main_a1")
    play.say("<result>fine</result>", "main_a2")
    play.fail("setup", "main_a3")
    return play


def finished(wait: str) -> Play:
    play = two_fail(wait)
    play.say("<result>all good</result>")
    play.pass_time()
    return play


def test_failures_that_nobody_expected_are_in_every_view() -> None:
    run = finished("<wait>N</wait>").run
    assert (run.final_status, exit_code(run), words.reason(run)) == ("failed", 1, "2 of 4 agents failed")
    lines = ending(run, "failed").splitlines()
    assert "why:    2 of 4 agents failed" in lines
    assert "failed: main_a1 (a.py) in A.md: boom" in lines
    assert "failed: main_a3 (c.py) in A.md: boom" in lines
    assert "result: all good" in lines
    assert run_lines(run, "failed", 0, "/nowhere")[0] == "test-1: failed (2 of 4 agents failed)"
    found = documents.outcome(run)
    assert (found["agents_failed"], found["collected_failures"]) == (2, {"main_a1": "boom", "main_a3": "boom"})
    assert next_command(run) == "raymond logs test-1", "nothing is left that a resume could try again"


def test_failures_that_are_expected_are_told_and_the_run_is_completed() -> None:
    run = finished("<wait failures='ok'>N</wait>").run
    assert (run.final_status, exit_code(run), words.reason(run)) == ("completed", 0, None)
    assert "note:   2 of 4 agents failed; the workflow handled that" in ending(run, "completed")
    assert "  2 of 4 agents failed; the workflow handled that" in run_lines(run, "completed", 0, "/nowhere")


def test_failed_next_is_where_a_wait_leads_when_one_has_failed_and_only_then() -> None:
    play = two_fail("<wait failed_next='BAD'>N</wait>")
    assert (play.main.state, [one.status for one in play.main.visit.results or ()]) == (
        "BAD.md",
        ["failed", "done", "failed"],
    )
    play = Play(FILES)
    play.say("<fork>A</fork><wait failed_next='BAD'>N</wait>")
    play.say("<result>fine</result>", "main_a1")
    assert play.main.state == "N.md"


def test_a_failure_comes_before_a_timeout() -> None:
    wait = "<wait timeout='5m' timeout_next='LATE' failed_next='BAD'>N</wait>"
    for failing, state in ((True, "BAD.md"), (False, "LATE.md")):
        play = Play(FILES)
        play.say(FORKS + wait)
        if failing:
            play.fail("setup", "main_a1")
        play.now += 301
        play.pass_time()
        assert play.main.state == state


def test_what_failed_before_the_wait_counts_too() -> None:
    play = Play(FILES)
    play.say("<fork next='N'>A</fork>")
    play.fail("setup", "main_a1")
    play.say("<wait failed_next='BAD'>LATE</wait>")
    assert play.main.state == "BAD.md"


@pytest.mark.slow
def test_the_commands_say_how_many_failed(room: Room) -> None:
    files = {
        "START.sh": "echo '<fork>BAD</fork><fork>BAD</fork><wait>END</wait>'",
        "BAD.sh": "exit 1",
        "END.sh": "echo '<result>all good</result>'",
    }
    ran = room.drive(files)
    assert (ran.code, ran.result) == (1, "all good")
    assert "2 of 3 agents failed" in room.raymond("list").stdout
    [row] = json.loads(room.raymond("list", "--json").stdout)
    assert (row["status"], row["agents"], row["agents_failed"]) == ("failed", 3, 2)
    anew = f"the workflow has already handled the failure of main_bad1; to start anew: raymond run {ran.run.start.scope_dir}"
    again = room.resume()
    assert (again.code, ran.run.seq) == (1, again.run.seq)
    assert again.err.startswith(f"r has ended: nothing to resume\nhint: {anew}\n")
    given = room.raymond("resume", "r", "--agent", "main_bad1", "--result", "x")
    assert (given.returncode, given.stderr) == (2, f"error: there is no agent main_bad1 left in r\nhint: {anew}\n")


def test_the_failures_that_nobody_handled_come_first_and_the_rest_is_counted() -> None:
    play = Play(FILES)
    play.say("<fork f='ok'>A</fork>" * 5 + "<wait failures='ok'>N</wait>")
    for number in range(1, 6):
        play.fail("setup", f"main_a{number}")
    play.say("<fork f='guilty'>A</fork><wait>N</wait>")
    play.fail("setup", "main_a6")
    play.say("<result>x</result>")
    play.pass_time()
    lines = ending(play.run, "failed").splitlines()
    assert "why:    6 of 7 agents failed; the workflow handled 5 of them" in lines
    failed = [line for line in lines[1:] if line.startswith("failed: ")]
    assert failed[:2] == ["failed: main_a6 (guilty) in A.md: boom", "failed: main_a1 (ok) in A.md (handled): boom"]
    assert failed[5:] == ["failed: 1 more agent: raymond status test-1 --agents"]
    shown = run_lines(play.run, "failed", 0, "/nowhere", every=True)
    assert [line.split()[1] for line in shown if line.startswith("  failed: ")] == [
        f"main_a{number}" for number in (6, 1, 2, 3, 4, 5)
    ]
    found = json.loads(documents.state_file(play.run))
    assert (found["agents_failed"], next(iter(found["collected_failures"]))) == (6, "main_a6")


def test_more_failed_agents_than_are_shown_are_counted() -> None:
    play = Play(FILES)
    play.say("<fork>A</fork>" * 7 + "<goto>N</goto>")
    for number in range(1, 8):
        play.fail("setup", f"main_a{number}")
    assert "failed: 2 more agents: raymond status test-1 --agents" in ending(play.run, "running").splitlines()
