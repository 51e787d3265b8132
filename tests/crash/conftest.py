"""For every crash test."""

import os
import socket
from collections.abc import Iterator

import pytest

from crash import torture


@pytest.fixture(autouse=True)
def back() -> Iterator[None]:
    """Driving a run in this process changes the directory."""
    here = os.getcwd()
    yield
    os.chdir(here)


@pytest.fixture
def no_senders(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that does not tell who is at the other end of a socket, such as macOS."""
    monkeypatch.delattr(socket, "SO_PEERCRED")


@pytest.fixture(autouse=True)
def clear() -> Iterator[None]:
    """What a failing test left running is ended."""
    yield
    while torture.PLACES:
        torture.PLACES.pop().clear()
