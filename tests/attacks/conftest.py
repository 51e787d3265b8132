"""A room for each test, cleared after it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from trust.places import Place


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of every family of cases here the first is for every day, and the others for `make test-slow`."""
    seen: set[str] = set()
    for item in items:
        family = item.nodeid.partition("[")[0]
        if family in seen and "/attacks/" in family:
            item.add_marker(pytest.mark.slow)
        seen.add(family)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Place]:
    room = Place(tmp_path)
    yield room
    room.clear()
