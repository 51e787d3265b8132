"""A room for each test, cleared after it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from trust.places import Place


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Place]:
    room = Place(tmp_path)
    yield room
    room.clear()
