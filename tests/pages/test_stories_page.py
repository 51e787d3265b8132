"""docs/stories.md, typed from an empty folder as it stands on the page."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pages.reader import Reader, Typed, blocks, left_out, room_with_git
from raymond.loops.formats import prd_status
from running import Room

PAGE = (Path(__file__).parents[2] / "docs" / "stories.md").read_text("utf-8")


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = room_with_git(tmp_path)
    yield room
    room.clear()


@pytest.mark.slow
def test_everything_on_the_page_happens_as_it_says(room: Room) -> None:
    Reader(room).reads(PAGE)


def test_the_status_file_on_the_page_is_one() -> None:
    (example,) = left_out(PAGE)
    status = prd_status.read(example)
    assert prd_status.with_statistics(status) == status
    assert [*status] == ["version", "lastUpdated", "prdFile", "stories", "statistics"]


def test_the_page_has_both_commands() -> None:
    typed = " ".join(block.line for block in blocks(PAGE) if isinstance(block, Typed))
    assert "raymond prd status-init" in typed
    assert "raymond prd import" in typed
