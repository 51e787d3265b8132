"""`raymond prd status-init`: a PRD of ten stories, its specs, and a status file that loses nothing."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from running import Room
from typist import Typist

SHOP = Path(__file__).parent / "shop"
TABLE = """\
STORY  TITLE                     CHECK      LINKS   TASKS
US-1   Log in                    command    high    1.1.1, 1.1.2
US-2   Sign up                   tasks      high    1.2.1, 1.2.2
US-3   Reset a password          manual     none    -
US-4   Search the catalogue      composite  none    -
US-5   Put goods into a basket   tasks      high    2.1.1
US-6   Pay by card               problem    none    -
US-7   Send an invoice           tasks      medium  2.1.3
US-8   Cancel an order           command    none    -
US-9   Export orders as a table  tasks      medium  2.1.2
US-10  Speak German              manual     none    -
"""
REPORTS = """\
warning: docs/prd.md:62: US-6 cannot be verified: `run the payment tests` is not a command in backticks, `manual` or `tasks`
warning: docs/prd.md:82: US-10 names no criteria, no verification and no tasks
medium: 2.1.3 may belong to US-7: both say invoice, pdf
medium: 2.1.2 may belong to US-9: both say export, orders, head
broken link: US-8 names task 2.1.9, which does not exist
broken link: US-8 names story US-11, which does not exist
broken link: 2.1.4 names story US-77, which does not exist
belong to no story: 2 tasks (1.1.3, 2.1.4)
without tasks: 5 stories (US-3, US-4, US-6, US-8, US-10)
"""
ONLY_HIGH = "only links with high confidence are taken: --yes takes the medium ones too\n"
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


def test_without_a_terminal_only_links_by_name_are_taken(shop: Room) -> None:
    done = shop.raymond("prd", "status-init")
    assert done.stdout == TABLE + "wrote docs/prd-status.json: 10 stories (0 passed, 0 failed, 10 pending)\n"
    assert done.stderr == REPORTS + ONLY_HIGH
    assert done.returncode == 0
    assert linked(shop) == LINKS
    found = status(shop)
    assert found["statistics"] == {"total": 10, "passed": 0, "failed": 0, "pending": 10}
    assert found["prdFile"] == "docs/prd.md"
    assert found["stories"][3]["verification"] == {
        "type": "composite",
        "checks": [
            {
                "type": "command",
                "command": "sh tests/search.sh",
                "expected": 'output contains "10 of 10"',
                "timeout": "2m",
            },
            {"type": "manual", "criteria": ["results look sensible"]},
        ],
    }
    assert found["stories"][5]["problem"].startswith("`run the payment tests` is not a command")


def test_yes_takes_the_medium_ones_too_and_they_stay(shop: Room) -> None:
    assert shop.raymond("prd", "status-init", "--yes").returncode == 0
    assert linked(shop) == LINKS | MEDIUM
    assert shop.raymond("prd", "status-init").returncode == 0
    assert linked(shop) == LINKS | MEDIUM


@pytest.mark.slow
def test_nothing_is_lost_when_the_file_is_there(shop: Room) -> None:
    shop.raymond("prd", "status-init", "--yes")
    before = status(shop)
    before["mine"] = {"a": [1]}
    before["stories"][0] |= {"passes": True, "lastVerified": "2026-01-17T14:00:00Z", "owner": "Ada"}
    before["stories"][0]["history"] = [{"date": "2026-01-17T14:00:00Z", "result": "passed", "notes": "", "by": "me"}]
    before["stories"][4] |= {"passes": True}
    (shop.path / "docs/prd-status.json").write_text(json.dumps(before), "utf-8")
    prd = shop.path / "docs/prd.md"
    prd.write_text(prd.read_text("utf-8").replace("**Verification:** tasks", "**Verification:** `sh t.sh`"), "utf-8")
    done = shop.raymond("prd", "status-init")
    assert done.stdout.endswith("wrote docs/prd-status.json: 10 stories (1 passed, 0 failed, 9 pending)\n")
    after = status(shop)
    assert after["stories"][0] == before["stories"][0]
    assert after["mine"] == {"a": [1]}
    assert after["stories"][4]["passes"] is False
    assert after["stories"][4]["history"][0]["notes"] == "its verification changed"


@pytest.mark.slow
def test_a_broken_file_is_kept_aside_and_built_anew(shop: Room) -> None:
    path = shop.path / "docs/prd-status.json"
    for aside in ("prd-status.json.broken", "prd-status.json.broken_2"):
        path.write_text('{"stories": 1}', "utf-8")
        done = shop.raymond("prd", "status-init")
        assert "docs/prd-status.json is broken and is kept aside: `stories` is not a list\n" in done.stderr
        assert f"the broken one is now docs/{aside}\n" in done.stderr
        assert (shop.path / "docs" / aside).read_text("utf-8") == '{"stories": 1}'
        assert len(status(shop)["stories"]) == 10


@pytest.mark.slow
def test_a_link_is_not_followed(shop: Room) -> None:
    elsewhere = shop.path / "elsewhere.json"
    elsewhere.write_text("mine", "utf-8")
    os.symlink(elsewhere, shop.path / "docs/prd-status.json")
    done = shop.raymond("prd", "status-init")
    assert "docs/prd-status.json is broken and is kept aside: it is not a file\n" in done.stderr
    assert elsewhere.read_text("utf-8") == "mine"
    assert len(status(shop)["stories"]) == 10
    assert not (shop.path / "docs/prd-status.json").is_symlink()


def test_programs_get_one_document(shop: Room) -> None:
    done = shop.raymond("prd", "status-init", "--json", "--yes")
    found = json.loads(done.stdout)
    assert found["stories"][6] == {
        "id": "US-7",
        "title": "Send an invoice",
        "verification": "tasks",
        "problem": None,
        "confidence": "medium",
        "tasks": [{"story": "US-7", "task": "2.1.3", "confidence": "medium", "why": "both say invoice, pdf"}],
    }
    assert (found["orphans"], found["medium"], found["broken"]) == (["1.1.3", "2.1.4"], True, None)
    assert done.stderr == REPORTS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "error: docs/prd.md does not exist\nhint: write your stories there, or: raymond prd import FILE\n"),
        ("# Nothing\n", "error: docs/prd.md has no stories\nhint: a story begins with a heading such as `### US-1: Log in` under `## User Stories`\n"),
    ],
)  # fmt: skip
def test_a_prd_without_stories_is_refused(tmp_path: Path, text: str | None, said: str) -> None:
    room = Room(tmp_path)
    (room.path / "docs").mkdir()
    if text is not None:
        (room.path / "docs/prd.md").write_text(text, "utf-8")
    done = room.raymond("prd", "status-init", "--yes")
    assert (done.returncode, done.stderr, done.stdout) == (2, said, "")
    assert not (room.path / "docs/prd-status.json").exists()


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
