"""Times on the person's own clock on a terminal, in UTC everywhere else."""

import io
import time
from collections.abc import Iterator

import pytest

from raymond.faces import words
from raymond.faces.lines import Lines
from raymond.machine import events
from raymond.machine.events import Decision

LATER = 1_900_000_000.0
"""2030-03-17T17:46:40Z"""


class Screen(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def in_new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def closed() -> Decision:
    event = events.BackendClosed(backend="claude", kind="limit", error="used up", until=LATER)
    return Decision(seq=1, time=LATER - 3600, events=[event])


def told(stream: io.StringIO) -> str:
    lines = Lines(stream)
    lines.add(closed(), {}, "$0.00")
    lines.refresh()
    return stream.getvalue()


def test_one_screen_has_one_clock_and_a_file_has_utc() -> None:
    said = "claude is unavailable until {} (limit): used up\n"
    assert told(io.StringIO()) == f"[2030-03-17T16:46:40Z] {said.format('2030-03-17T17:46:40Z')}"
    assert told(Screen()) == f"[2030-03-17 12:46:40] {said.format('2030-03-17 13:46:40')}"
    assert words.line(closed().events[0]) == said.format("2030-03-17T17:46:40Z").rstrip()


def test_the_day_is_left_out_where_it_is_today() -> None:
    now = time.time()
    with words.times_for(None):
        assert words.instant(now) == time.strftime("%H:%M:%S", time.localtime(now))
        assert words.instant(0.0) is None
        with words.times_for(io.StringIO()):
            assert str(words.instant(now)).endswith("Z")
        assert not str(words.instant(now)).endswith("Z")
