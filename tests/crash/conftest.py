"""For every crash test."""

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def back() -> Iterator[None]:
    """Driving a run in this process changes the directory."""
    here = os.getcwd()
    yield
    os.chdir(here)
