"""docs/gates.md, typed from an empty folder as it stands on the page."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pages.reader import Reader, Typed, blocks, left_out, room_with_git
from running import Room

PAGE = (Path(__file__).parents[2] / "docs" / "gates.md").read_text("utf-8")


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = room_with_git(tmp_path)
    yield room
    room.clear()


@pytest.mark.slow
def test_everything_on_the_page_happens_as_it_says(room: Room) -> None:
    Reader(room).reads(PAGE)


def test_nothing_on_the_page_is_left_out() -> None:
    assert left_out(PAGE) == []
    typed = [block.line for block in blocks(PAGE) if isinstance(block, Typed)]
    assert {"raymond gate fix", "raymond review cheat", "raymond accept signs"} <= set(typed)
