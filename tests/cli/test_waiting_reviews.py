"""What `status`, `resume` and `inbox` say of a run that waits for a review, and after it was decided."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import cheating
from running import Room
from typist import Typist

pytestmark = pytest.mark.slow

WHY = "green only with the agent's tests/check.sh: as sealed, `sh tests/check.sh` ended with exit code 1"


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    """A run that waits for a review."""
    yield from cheating.waiting(tmp_path)


def test_status_says_it_once_and_names_the_review_first(room: Room) -> None:
    lines = room.raymond("status", "r").stdout.splitlines()
    assert lines[0] == "r: paused (1 agent paused, main: waits for a review), not running"
    at = lines.index(f"      review: {WHY}")
    assert [line.split() for line in lines[at - 1 : at]] == [["main", "START.md", "paused"]]
    assert lines[at + 1 :] == [
        "      next:  raymond review r",
        "      then:  raymond accept r main, or raymond reject r main REASON",
        "      or:    raymond resume r --agent main with --goto STATE or --give-up",
        "next: raymond review r",
    ]


def test_resume_says_that_a_person_has_to_decide(room: Room) -> None:
    before = room.folder().joinpath("journal.jsonl").read_bytes()
    done = room.raymond("resume", "r")
    told = "nothing to resume until a person decides: raymond review r\n"
    assert (done.returncode, done.stdout, done.stderr) == (3, "", told)
    assert room.folder().joinpath("journal.jsonl").read_bytes() == before
    done = room.raymond("resume", "r", "--json")
    assert (done.returncode, json.loads(done.stdout)["status"]) == (3, "paused")


def test_the_inbox_has_it_too(room: Room) -> None:
    assert room.raymond("inbox").stdout == "1 to review: raymond review r\n"
    asks = {"START.sh": "echo '<ask next=\"END\">Which?</ask>'", "END.sh": "echo '<result>x</result>'"}
    assert room.raymond("run", room.flow(asks, "asks"), "--id", "q").returncode == 3
    shown = room.raymond("inbox").stdout
    assert "Which?" in shown
    assert shown.endswith("answer: raymond answer q main\n\n1 to review: raymond review r\n")
    assert len(json.loads(room.raymond("inbox", "--json").stdout)) == 1, "a list of questions, as before"


def test_after_a_decision_status_says_how_to_go_on(room: Room) -> None:
    person = Typist(room, "accept", "r", "--no-resume")
    person.sees("accept this change")
    person.type("y\r")
    assert person.end() == 0
    lines = room.raymond("status", "r").stdout.splitlines()
    assert lines[0] == "r: answered (accepted, not continued yet), not running"
    assert lines[-1] == "next: raymond resume r"
    assert "to review" not in room.raymond("inbox").stdout
    assert room.resume().code == 0


def test_after_a_rejection_too(room: Room) -> None:
    assert Typist(room, "reject", "r", "main", "no", "--no-resume").end() == 0
    assert (
        room.raymond("status", "r").stdout.splitlines()[0] == "r: answered (rejected, not continued yet), not running"
    )
