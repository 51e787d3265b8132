"""A run that waits for a review: its agent has changed the script that decides its check."""

from collections.abc import Iterator
from pathlib import Path

from running import Room

CHEAT = (
    "START: [[{text: <result>done</result>, writes: {tests/check.sh: exit 0}}, It was wrong. <result>done</result>]]"
)
FLOW = {"START.md": "---\ngate: sh tests/check.sh\n---\nDo it: <result>done</result>\n", "replies.yaml": CHEAT}


def waiting(path: Path) -> Iterator[Room]:
    """A room with such a run, which is called `r`."""
    room = Room(path)
    (room.path / "tests").mkdir()
    (room.path / "tests" / "check.sh").write_text("exit 1\n", "utf-8")
    assert room.command(FLOW).code == 3
    yield room
    room.clear()
