"""A room for each test, cleared after it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from trust.places import Place

DAILY = 6
"""How many tests of every file here are for every day; each starts programs."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first tests of every file here, one case each, are for every day, and the others for `make test-slow`."""
    seen: dict[str, list[str]] = {}
    for item in items:
        file, family = item.nodeid.partition("::")[0], item.nodeid.partition("[")[0]
        if "/trust/" not in file:
            continue
        families = seen.setdefault(file, [])
        if family in families or len(families) >= DAILY:
            item.add_marker(pytest.mark.slow)
        families.append(family)


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Place]:
    room = Place(tmp_path)
    yield room
    room.clear()
