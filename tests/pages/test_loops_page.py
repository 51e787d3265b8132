"""docs/loops.md, typed from an empty folder as it stands on the page."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pages.reader import Reader, Typed, blocks, left_out, room_with_git
from running import Room

PAGE = (Path(__file__).parents[2] / "docs" / "loops.md").read_text("utf-8")


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = room_with_git(tmp_path)
    yield room
    room.clear()


@pytest.mark.slow
def test_everything_on_the_page_happens_as_it_says(room: Room) -> None:
    Reader(room).reads(PAGE)


def test_the_page_has_both_loops() -> None:
    assert left_out(PAGE) == [], "a file or a command each"
    typed = " ".join(block.line for block in blocks(PAGE) if isinstance(block, Typed))
    assert "raymond ralph PROMPT.md" in typed
    assert "raymond continuous-session start" in typed


def test_the_page_begins_with_the_question_which_loop_it_is() -> None:
    _, first, *_ = PAGE.split("\n## ")
    assert first.startswith("Which loop do I want?\n")
    commands = ("ralph PROMPT.md", "continuous-session start", "task-loop start", "story-loop start", "run WORKFLOW")
    assert [one for one in commands if f"| `raymond {one}" not in first] == []
