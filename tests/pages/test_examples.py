"""The examples run as their READMEs say, and the page on security is true where it can be tried."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders import place, start
from raymond.backends import registry, scripted
from raymond.control import preflight
from raymond.language import lint
from raymond.machine.events import (
    AgentCalled,
    AgentMoved,
    AgentReturned,
    AgentStarted,
    AskEnded,
    AskStarted,
    WaitEnded,
    WaitStarted,
)
from raymond.store import exports, journal, loader
from running import PATIENCE, Ran, Room

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
NAMES = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())
PLACES = {"events": "events/workflow"}
"""Where the workflow is, if other files are beside it."""
MOVES = (AgentStarted, AgentMoved, AgentCalled, AgentReturned, WaitEnded, AskEnded)

ROUND = "REVIEW.md FIX.md"
PLANNED = "1_START.sh PICK.md WORK.md PLAN.md REFINE.md REFINE.md REFINE.md PLAN_READY.sh IMPLEMENT.md"
WORKERS = "main_review1/REVIEW_FILE.md main_review2/REVIEW_FILE.md main_review3/REVIEW_FILE.md"
COMMIT_MESSAGE = 'Greet with "hello" instead of "helo"\n\nThe typing error was in the first line anybody saw.'

EXPECTED = {
    "hello": [(0, "Welcome, dear Ada!", "START.md SHORTEN.md SHOW.sh")],
    "review-loop": [
        (0, "approved: dates are parsed with their zone", f"START.md {ROUND} {ROUND} REVIEW.md APPROVED.md"),
        (0, "not approved: one case has no test yet", f"START.md {ROUND} {ROUND} OPEN_POINTS.md"),
    ],
    "issue": [(0, "issue 201 closed by 4f0c2aa", f"{PLANNED} BUILD.md TEST.sh FIX.md TEST.sh REVIEW.md COMMIT.md")],
    "fan-out": [
        (0, "1 problem in 3 files: the second one never closes its file (line 12)", f"START.sh {WORKERS} COLLECT.md")
    ],
    "poll": [(0, "the build is there, nothing to do", "START.sh START.sh START.sh HANDLE.md")],
    "approval": [
        (3, "", "START.md"),
        (3, "", "START.md DECIDE.sh REVISE.md"),
        (0, "released 2.1", "START.md DECIDE.sh REVISE.md DECIDE.sh PUBLISH.sh"),
    ],
    "hybrid": [(0, COMMIT_MESSAGE, "START.sh WRITE.md CHECK.sh WRITE.md CHECK.sh")],
    "events": [(0, "bug: greeting: correct the typing error in the first line", "START.py TRIAGE.md")],
}
"""For each command of a README: the exit code, the result, and the states visited so far (by `main` unless named)."""


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    """A room with the examples in it and `raymond` on the path, as a reader of a README has them."""
    command = tmp_path / "bin" / "raymond"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m raymond "$@"\n', "utf-8")
    command.chmod(0o755)
    room = Room(tmp_path, PATH=f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    shutil.copytree(EXAMPLES, room.path / "examples")
    yield room
    room.clear()


def fences(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def readme(name: str) -> str:
    return (EXAMPLES / name / "README.md").read_text("utf-8")


def commands(name: str) -> list[str]:
    """What a README says to type to see the example with scripted replies."""
    return fences(readme(name), "bash")[0].splitlines()


def typed(room: Room, line: str) -> Ran:
    """Type a line into a shell; the run it was about."""
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=room.path,
        env=room.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    ids = room.project.ids()
    assert ids, done.stderr
    return Ran(room, ids[0], done.returncode, done.stdout, done.stderr)


def visited(ran: Ran) -> list[str]:
    return [
        event.state if event.agent == "main" else f"{event.agent}/{event.state}"
        for event in ran.events
        if isinstance(event, MOVES)
    ]


def test_there_is_an_expectation_for_every_example() -> None:
    assert sorted(EXPECTED) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_an_example_does_what_its_readme_promises(name: str, room: Room) -> None:
    lines = commands(name)
    assert len(lines) == len(EXPECTED[name])
    for line, (code, result, states) in zip(lines, EXPECTED[name], strict=True):
        ran = typed(room, line)
        assert (ran.code, ran.out.strip()) == (code, result), ran.err
        assert visited(ran) == states.split()
    left = sorted(path.name for path in room.path.iterdir())
    assert left == [".raymond", "examples"], "an example leaves nothing in the directory of whoever tries it"


@pytest.mark.parametrize("name", NAMES)
def test_a_readme_is_short_and_has_both_commands(name: str) -> None:
    text = readme(name)
    assert text.startswith(f"# {name}\n")
    assert len(text.splitlines()) <= 30
    assert "What to change" in text
    alone, real = fences(text, "bash")
    command = f"raymond run examples/{PLACES.get(name, name)} "
    assert command in alone
    assert "--backend" not in alone
    assert command in real
    assert "--backend claude" in real


@pytest.mark.parametrize("name", NAMES)
def test_the_readme_of_an_example_is_no_state(name: str) -> None:
    loaded = loader.load(str(EXAMPLES / PLACES.get(name, name)))
    assert "README.md" not in loaded.workflow.states
    assert loaded.workflow.name == name


@pytest.mark.parametrize(
    "folder", [*(EXAMPLES / PLACES.get(name, name) for name in NAMES), ROOT / "src" / "raymond" / "demo"], ids=str
)
def test_nothing_of_ours_is_warned_of(folder: Path) -> None:
    loaded = loader.load(str(folder))
    said = registry.replies_of(start(place({"START.md": ""}), backend="scripted"), loaded.files)
    assert said
    given = {"publish", "test", "every"}  # what the READMEs give with --var
    found = [*lint.check(loaded.workflow, given), *preflight.script_warnings(loaded.workflow)]
    assert [*found, *said.unknown(loaded.workflow.states)] == []


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*/*.sh")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_script_of_an_example_is_bash(script: Path) -> None:
    subprocess.run(["bash", "-n", script], check=True)


@pytest.mark.parametrize("name", NAMES)
def test_a_zipped_example_is_the_same_workflow(name: str, tmp_path: Path) -> None:
    place = EXAMPLES / PLACES.get(name, name)
    packed = shutil.make_archive(str(tmp_path / name), "zip", place.parent, place.name)
    assert loader.load(packed).digest == loader.load(str(place)).digest


def test_a_zipped_example_runs_like_its_folder(room: Room) -> None:
    shutil.make_archive(str(room.path / "packed"), "zip", EXAMPLES, "fan-out")
    ran = typed(room, commands("fan-out")[0].replace("examples/fan-out", "packed.zip"))
    [(code, result, states)] = EXPECTED["fan-out"]
    assert (ran.code, ran.out.strip(), visited(ran)) == (code, result, states.split()), ran.err


def test_the_index_names_every_example() -> None:
    index = (EXAMPLES / "README.md").read_text("utf-8")
    assert sorted(re.findall(r"^\| \[([a-z-]+)\]\(\1\)", index, re.MULTILINE)) == NAMES


def test_polling_really_sleeps(room: Room) -> None:
    ran = typed(room, commands("poll")[0])
    sleeps = [event for event in ran.all(AgentMoved) if event.wake_at]
    times = [decision.time for decision in journal.decisions(room.project.run(ran.id))]
    assert len(sleeps) == 2
    assert times[-1] - times[0] > 0.39
    assert "look 2: nothing yet" in ran.err


def test_polling_in_vain_is_a_failure(room: Room) -> None:
    ran = typed(room, "raymond run examples/poll --input false --var every=1ms --set START.max_visits=2")
    assert (ran.code, ran.out, visited(ran)) == (1, "", ["START.sh", "START.sh", "GIVE_UP.sh"])
    assert "failed: main in GIVE_UP.sh: ended with exit code 1: nothing came: false" in ran.err


@pytest.mark.slow
def test_a_no_publishes_nothing(room: Room) -> None:
    typed(room, "raymond run examples/approval --id notes --input 2.1 --var publish='touch published'")
    ran = typed(room, "raymond answer notes No. --attach")
    assert (ran.code, ran.out) == (0, "not released: a person said no\n")
    assert not (room.path / "published").exists()


@pytest.mark.slow
def test_a_yes_publishes_and_a_wish_reaches_the_agent_as_it_was_said(room: Room) -> None:
    typed(room, "raymond run examples/approval --id notes --input 2.1 --var publish='touch published'")
    asked = typed(room, """raymond answer notes 'Say "hello" & <b>less</b>' --attach""")
    assert 'Say "hello" & <b>less</b>' in asked.transcript()[-1]["sent"]
    assert [event.question.splitlines()[-1] for event in asked.all(AskStarted)] == [
        "Release? yes, no, or what to change"
    ] * 2
    assert typed(room, "raymond answer notes yes --attach").out == "released 2.1\n"
    assert (room.path / "published").exists()


def test_a_file_of_any_name_reaches_its_worker(room: Room) -> None:
    ran = typed(room, """printf 'a "b" <c>&d.py\n\n' | raymond run examples/fan-out --input -""")
    [worker] = [event for event in ran.all(AgentStarted) if event.agent != "main"]
    assert worker.variables == {"file": 'a "b" <c>&d.py'}


def test_a_fan_out_without_files_forks_nobody(room: Room) -> None:
    ran = typed(room, "printf '\\n\\n' | raymond run examples/fan-out --input -")
    assert (ran.code, ran.out) == (0, "no files, nothing to review\n")
    assert ran.all(WaitStarted) == []


def test_workers_that_fail_are_reported_and_the_run_is_done(room: Room) -> None:
    (room.path / "bad-day.yaml").write_text("COLLECT: <result>nobody came</result>\n", "utf-8")
    ran = typed(room, "printf 'a\nb\n' | raymond run examples/fan-out --input - --replies bad-day.yaml")
    assert (ran.code, ran.out) == (0, "nobody came\n")
    assert ran.transcript()[-1]["sent"].count('"status":"failed"') == 2


def test_the_main_conversation_of_the_issue_holds_nothing_of_its_subtasks(room: Room) -> None:
    ran = typed(room, commands("issue")[0])
    [session] = ran.sessions("main", "COMMIT.md")
    talk = scripted.conversation(room.project.run(ran.id).sessions, session)
    assert [turn.prompt.splitlines()[0] for turn in talk] == [
        "We work on this issue: 201 the greeting has a typing error",
        f"The plan is complete: {exports.tasks(str(room.path), ran.id)}/main/plan.md",
        "Built as planned, and all tests pass.",
        "Commit the change. The first line of the message says what changed; the last one says which issue it closes.",
    ]


def test_an_issue_whose_tests_stay_red_is_said_to_be_unfinished(room: Room) -> None:
    ran = typed(room, "raymond run examples/issue --input '201 a bug' --var test=false")
    assert visited(ran).count("FIX.md") == 5
    sent = [step["sent"] for step in ran.transcript() if step["state"] == "REVIEW.md"]
    assert sent[0].startswith("Not finished: the tests are still red, see ")


def test_a_message_that_never_keeps_to_the_rules_is_a_failure(room: Room) -> None:
    (room.path / "bad-day.yaml").write_text("WRITE: <result>Too bad.</result>\n", "utf-8")
    ran = typed(room, "echo x | raymond run examples/hybrid --input - --replies bad-day.yaml")
    assert ran.code == 1
    assert visited(ran).count("CHECK.sh") == 4
    assert "main | The first line ends with a full stop." in ran.lines


# --- the pages -------------------------------------------------------------------------------------------------------


def test_what_a_run_leaves_can_be_read_by_nobody_else_as_the_page_on_security_says(room: Room) -> None:
    ran = typed(room, commands("fan-out")[0])
    found = [room.home, *room.home.rglob("*"), room.path / ".raymond", *(room.path / ".raymond").rglob("*")]
    assert {path.name for path in found} >= {"journal.jsonl", "transcripts", "work", "source.zip", f"{ran.id}.json"}
    assert [path for path in found if path.stat().st_mode & 0o077] == []
