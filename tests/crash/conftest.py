"""For every crash test."""

import os
from collections.abc import Iterator

import pytest

from crash import torture


@pytest.fixture(autouse=True)
def back() -> Iterator[None]:
    """Driving a run in this process changes the directory."""
    here = os.getcwd()
    yield
    os.chdir(here)


@pytest.fixture(autouse=True)
def clear() -> Iterator[None]:
    """What a failing test left running is ended."""
    yield
    while torture.PLACES:
        torture.PLACES.pop().clear()
