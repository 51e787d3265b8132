"""What `raymond prd status-init` asks a person."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from running import Room
from scenario import LOOPS
from typist import Typist

SHOP = LOOPS / "prd-status/files/docs"
NAMED = {"US-1": ["1.1.1", "1.1.2"], "US-2": ["1.2"], "US-5": ["2.1.1"], "US-8": ["2.1.9"]}
LINKS: dict[str, list[str]] = {
    **NAMED,
    **{id: [] for id in ("US-3", "US-4", "US-6", "US-7", "US-9", "US-10")},
}
MEDIUM = {"US-7": ["2.1.3"], "US-9": ["2.1.2"]}


@pytest.fixture
def shop(tmp_path: Path) -> Room:
    room = Room(tmp_path)
    shutil.copytree(SHOP, room.path / "docs")
    return room


def status(room: Room) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((room.path / "docs/prd-status.json").read_text("utf-8"))
    return found


def linked(room: Room) -> dict[str, list[str]]:
    return {one["id"]: one["implementedBy"] for one in status(room)["stories"]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second", "expected"), [("y\n", "y\n", LINKS | MEDIUM), ("\n", "\n", LINKS), ("n\n", "", None)]
)
def test_a_person_is_asked(shop: Room, first: str, second: str, expected: dict[str, list[str]] | None) -> None:
    person = Typist(shop, "prd", "status-init", columns=160)
    person.sees(r"Write docs/prd-status.json\? \[Y/n\] ")
    person.type(first)
    if second:
        person.sees(r"Take the medium ones too\? \[y/N\] ")
        person.type(second)
    assert person.end() == 0
    assert (linked(shop) if expected else (shop.path / "docs/prd-status.json").exists()) == (expected or False)
