"""No test reads or writes what the person who runs it has set or started."""

import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

import pace
from running import Room

# How long a machine takes to think of an input is not about what is tested.
settings.register_profile("unhurried", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(scope="session", autouse=True)
def nobody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A person without settings, whose projects are remembered in a folder of the tests."""
    with pytest.MonkeyPatch.context() as changed:
        for name in [name for name in os.environ if name.startswith("RAYMOND_")]:
            changed.delenv(name)
        for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
            changed.setenv(name, str(tmp_path_factory.mktemp(name.lower())))
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test that starts programs and has many cases, `make test` runs the first ones, and `make test-slow` the rest."""
    seen = Counter[str]()
    for item in items:
        test, _, case = item.nodeid.partition("[")
        is_daily = not any(map(item.get_closest_marker, ("slow", "torture", "crashpoints", "e2e")))
        if case and is_daily and "room" in getattr(item, "fixturenames", ()):
            seen[test] += 1
            if seen[test] > pace.DAILY:
                item.add_marker(pytest.mark.slow)
    if third := os.environ.get("SLOW_THIRD"):
        _take(items, int(third))


def _take(items: list[pytest.Item], third: int) -> None:
    """Take this third of the slow tests, which is the same on every machine."""
    items[:] = [one for one in items if not one.get_closest_marker("slow") or crc32(one.nodeid.encode()) % 3 == third]


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """No dots where nobody watches: in a log they bury the failure that one looks for."""
    if report.passed and report.when == "call" and not sys.stdout.isatty():
        return "passed", "", ""
    return None


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    """A directory to start runs in, and nothing left running after the test."""
    room = Room(tmp_path)
    yield room
    room.clear()
