"""`raymond review`, `accept` and `reject` as a person types them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from running import Room

CHEAT = (
    "START: [[{text: <result>done</result>, writes: {tests/check.sh: exit 0}}, It was wrong. <result>done</result>]]"
)
FLOW = {"START.md": "---\ngate: sh tests/check.sh\n---\nDo it: <result>done</result>\n", "replies.yaml": CHEAT}


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    """A run that waits for a review."""
    room = Room(tmp_path)
    (room.path / "tests").mkdir()
    (room.path / "tests" / "check.sh").write_text("exit 1\n", "utf-8")
    assert room.command(FLOW).code == 3
    yield room
    room.clear()


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
