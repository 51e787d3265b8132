"""docs/tasks.md, typed from an empty folder as it stands on the page."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pages.reader import Reader, Typed, blocks, room_with_git
from running import Room

PAGE = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text("utf-8")


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = room_with_git(tmp_path)
    yield room
    room.clear()


@pytest.mark.slow
def test_everything_on_the_page_happens_as_it_says(room: Room) -> None:
    Reader(room).reads(PAGE)


def test_the_page_shows_a_fix_task() -> None:
    typed = " ".join(block.line for block in blocks(PAGE) if isinstance(block, Typed))
    assert "raymond task-loop start --replies replies.yaml --id night --attempts 1 --on-fail create-fix-task" in typed
