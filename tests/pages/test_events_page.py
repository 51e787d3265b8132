"""docs/events.md, typed from an empty folder as it stands on the page."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pages.delivering import EVENTS
from pages.reader import Reader, Typed, blocks, empty_room
from running import Room

PAGE = (Path(__file__).parents[2] / "docs" / "events.md").read_text("utf-8")


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = empty_room(tmp_path)
    yield room
    room.clear()


@pytest.mark.slow
def test_everything_on_the_page_happens_as_it_says(room: Room) -> None:
    Reader(room).reads(PAGE)


def test_every_command_of_the_page_is_typed() -> None:
    typed = [block.line for block in blocks(PAGE) if isinstance(block, Typed)]
    assert len(typed) == len(re.findall(r"^\$ ", PAGE, re.MULTILINE)) == 6


def test_the_page_names_every_file_of_the_example() -> None:
    files = {path.name for path in EVENTS.iterdir() if path.is_file() and path.name != "README.md"}
    assert set(re.findall(r"examples/events/([\w.-]+\w)", PAGE)) == {*files, "workflow"}


def test_the_page_names_every_answer_of_the_receiver() -> None:
    code = (EVENTS / "receiver.py").read_text("utf-8")
    given = re.findall(r"(?:return|else|HTTP/1\.0) (\d{3})\b", code)
    assert set(re.findall(r"^\| (\d{3}) \|", PAGE, re.MULTILINE)) == set(given)
