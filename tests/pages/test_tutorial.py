"""The tutorial, typed from an empty folder as it stands on the page."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pages.reader import Reader, Typed, alike, blocks, empty_room, left_out
from running import Room

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text("utf-8")


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = empty_room(tmp_path)
    yield room
    room.clear()


@pytest.mark.slow
def test_everything_in_the_tutorial_happens_as_it_says(room: Room) -> None:
    Reader(room).reads(PAGE)


def test_nothing_on_the_page_is_left_out() -> None:
    """Every fence is a file with a name or a block of commands, and every command of the page is in one."""
    assert left_out(PAGE) == []
    typed = [block.line for block in blocks(PAGE) if isinstance(block, Typed)]
    assert len(typed) == len(re.findall(r"^\$ ", PAGE, re.MULTILINE))


def test_what_differs_from_reader_to_reader_is_little() -> None:
    """A comparison that forgives too much proves nothing."""
    assert alike("completed: note after 7ms") == alike("completed: note after 1m 12s")
    assert alike("completed: note after 7ms") != alike("failed: note after 7ms")
    assert alike("[2026-01-17T14:03:23Z] main done") != alike("[2026-01-17T14:03:23Z] main failed")
    assert alike("cost:   $0.03 in 3 steps") != alike("cost:   $0.04 in 3 steps")
    assert alike("main gate passed (0s)") == alike("main gate passed (1.5s)")
    assert alike("main gate passed (0s)") != alike("main gate passed (0s, flaky: it was red the first time)")
