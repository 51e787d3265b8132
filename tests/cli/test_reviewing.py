"""`raymond review`, `accept` and `reject` as a person types them."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import cheating
from raymond.machine.events import GateEnded, ReviewEnded
from running import Room, until
from typist import Typist

HEAD = "r, main in START.md: review\nwhy:    green only with the agent's tests/check.sh: as sealed, "
WAYS = "accept: raymond accept r main\nreject: raymond reject r main REASON\n"


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    """A run that waits for a review."""
    yield from cheating.waiting(tmp_path)


@pytest.mark.slow
def test_whoever_is_not_at_a_terminal_is_told_what_to_type_there(room: Room) -> None:
    told = "hint: type it in a terminal (ssh -t), with no pipe: "
    both = "raymond accept r main or raymond reject r main REASON"
    rejected = room.raymond("reject", "r", "main", "no")
    moved = room.raymond("resume", "r", "--agent", "main", "--goto", "START")
    for done in (rejected, moved):
        assert done.returncode == 2
        assert done.stderr.endswith(f"which has to be typed on a terminal\n{told}{both}\n"), done.stderr
    accepted = room.raymond("accept", "r")
    assert (accepted.returncode, accepted.stderr.splitlines()[-1]) == (2, f"{told}raymond accept r")


@pytest.mark.slow
def test_a_review_says_how_to_decide_it_and_accept_asks(room: Room) -> None:
    review = room.raymond("review", "r").stdout
    assert review.startswith(HEAD)
    assert review.endswith(WAYS)
    person = Typist(room, "accept", "r", columns=200)
    asked = person.sees(re.escape("accept this change? [y/n] "))
    assert asked.removesuffix("accept this change? [y/n] ") == review.removesuffix(WAYS)
    person.type("y\n")
    person.sees("accepted; r continues in the background: raymond attach r\n")
    assert person.end() == 0
    assert room.raymond("wait", "r").returncode == 0
    assert [event.verdict for event in room.events() if isinstance(event, GateEnded)] == ["review", "review", "passed"]


@pytest.mark.slow
def test_a_green_check_that_does_not_count_is_not_called_red(room: Room) -> None:
    waits = room.raymond("status", "r").stdout
    assert "      review: green only with the agent's tests/check.sh" in waits
    assert "red:" not in waits

    (room.path / "tests" / "check.sh").write_text("exit 1\n", "utf-8")
    slow = {
        **cheating.FLOW,
        "replies.yaml": cheating.CHEAT.replace("It was wrong.", "{text: '', delay: 1h}, It was wrong."),
    }
    with room.start("run", room.flow(slow, "slow"), "--id", "s") as live:
        live.sees("the agent is asked why")
        shown = until(lambda: re.search(r"(?m)^ +gate:  .*$", room.raymond("status", "s").stdout), "the status")
    assert shown[0].startswith("      gate:  green only with the agent's tests/check.sh: as sealed, ")
    assert shown[0].endswith(" (the agent was told 1 of 3 times)")


ASKS = r"accept this change\? y, n, d shows the difference, Enter later > "


@pytest.mark.slow
def test_a_person_decides_where_the_review_is_shown(room: Room) -> None:
    person = Typist(room, "review", "r", columns=200)
    shown = person.sees(ASKS)
    assert shown.startswith(HEAD)
    assert "-grep -q right" not in shown
    person.type("\n")
    person.sees("1 review left for later: raymond review r\n")
    assert person.end() == 0
    person = Typist(room, "review", "r", columns=200)
    person.sees(ASKS)
    person.type("d\n")
    assert "what changed:\n" in person.sees(ASKS)
    person.type("y\n")
    person.sees("accepted; r continues in the background: raymond attach r\n")
    assert person.end() == 0
    assert room.raymond("wait", "r").returncode == 0


@pytest.mark.slow
def test_nobody_says_yes_to_what_was_not_shown(room: Room) -> None:
    person = Typist(room, "review", "r", columns=200)
    assert "what changed:" not in person.sees(ASKS)
    person.type("y\n")
    assert "what changed:\n" in person.sees(ASKS), "the difference comes first, then the question again"
    person.type("n\n")
    person.sees("why\\? The agent is told; Ctrl-C rejects nothing: ")
    person.type("leave the test as it is\n")
    person.sees("rejected; r continues in the background")
    assert person.end() == 0
    ended = until(lambda: [one for one in room.events() if isinstance(one, ReviewEnded)], "the decision")
    assert [(one.accepted, one.reason) for one in ended] == [(False, "leave the test as it is")]


@pytest.mark.slow
def test_an_agents_program_is_asked_nothing_on_a_terminal(room: Room) -> None:
    person = Typist(room, "review", "r", columns=200, CLAUDECODE="1")
    assert person.sees(re.escape(WAYS)).startswith(HEAD)
    assert person.end() == 0
