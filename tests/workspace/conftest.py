"""People of both kinds."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from workspace.checkout import Checkout
from workspace.person import KINDS, Person, moved_in


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with a person in them are slow, but for the `daily` ones as the user who runs the tests."""
    other = "user" if os.geteuid() == 0 else "root"
    for item in items:
        has_person = {"person", "anyone"} & set(getattr(item, "fixturenames", ()))
        is_daily = getattr(getattr(item, "function", None), "daily", False)
        kinds = getattr(getattr(item, "callspec", None), "params", {}).values()
        if (has_person and not is_daily) or other in kinds:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(params=KINDS)
def person(request: pytest.FixtureRequest) -> Iterator[Person]:
    """Root, then an ordinary user: a test that takes this runs as both."""
    with moved_in(request.param) as person:
        yield person


@pytest.fixture
def anyone() -> Iterator[Person]:
    """An ordinary user: for what does not depend on who it is, and for what root would be allowed."""
    with moved_in("user") as person:
        yield person


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    """A project, in this process, of a person without settings."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ann")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ann@example.org")
    return Checkout(tmp_path)
