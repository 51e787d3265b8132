"""`raymond prd import` that is killed, comes twice at once or has nobody to ask: no story is lost, and none is there twice."""

import fcntl
import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from raymond.loops.formats import prd, task_spec
from raymond.system.files import make_private
from running import PATIENCE, Room
from typist import Typist

PLAN = """# Nice plan
## Overview
Good.
## Context (from discovery)
- files: `a.go`
**Verification:** `true`
## Validation Commands
- `sh check.sh; touch ../there`
### Task 1: One
- [ ] a
- [x] b
### Task 2: Two
- [ ] c
"""
STRUCK = """
import os, sys
from raymond.cli import main
left = int(sys.argv[1])
real = os.replace
def replace(*args):
    global left
    if left == 0:
        os._exit(9)
    left -= 1
    real(*args)
os.replace = replace
sys.exit(main(sys.argv[2:]))
"""
"""Dies before a document gets its name; what it had written is left behind."""


def stories(name: str, count: int = 40) -> str:
    entries = [
        {"id": f"US-{at}", "title": f"{name} {at}", "acceptanceCriteria": ["a"], "priority": 1, "passes": at % 2 == 0}
        for at in range(1, count + 1)
    ]
    return json.dumps({"project": name, "userStories": entries})


@pytest.fixture
def room(tmp_path: Path) -> Room:
    room = Room(tmp_path)
    (room.path / "docs").mkdir()
    for name in "ab":
        (room.path / f"{name}.json").write_text(stories(name), "utf-8")
    (room.path / "plan.md").write_text(PLAN, "utf-8")
    return room


def status(room: Room) -> dict[str, dict[str, Any]]:
    found = json.loads((room.path / "docs/prd-status.json").read_text("utf-8"))
    return {one["id"]: one for one in found["stories"]}


def tasks(room: Room) -> list[str]:
    specs = sorted((room.path / "docs/implementation").rglob("*.md"))
    return [task.id for path in specs for task in task_spec.read(path.read_text("utf-8")).tasks]


@pytest.mark.parametrize("documents", [0, 1, 2])
def test_an_import_that_was_killed_is_completed_by_the_same_import(room: Room, documents: int) -> None:
    argv = [sys.executable, "-c", STRUCK, str(documents), "prd", "import", "a.json", "--yes", "--verify", "true"]
    struck = subprocess.run(argv, cwd=room.path, env=room.environment, capture_output=True, timeout=PATIENCE)
    assert struck.returncode == 9, struck.stderr
    assert not (room.path / "docs/prd-status.json").exists()
    done = room.raymond("prd", "import", "a.json", "--yes", "--verify", "true")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (
        0,
        "wrote docs/prd-status.json: 40 stories (0 passed, 0 failed, 40 pending)",
    )
    found = status(room)
    assert [one.id for one in prd.read((room.path / "docs/prd.md").read_text("utf-8")).stories] == [*found]
    assert len(tasks(room)) == len({*tasks(room)}) == len(found) == 40
    imported = [id for id, one in found.items() if [entry["result"] for entry in one["history"]] == ["imported"]]
    assert imported == [f"US-{at}" for at in range(2, 41, 2)]
    assert not [*(room.path / "docs").glob("prd.md.*")], "what was half written is gone"
    again = room.raymond("prd", "import", "a.json", "--yes", "--verify", "true")
    assert again.stdout.endswith("nothing is new\n")


@pytest.mark.slow
def test_a_status_that_was_built_meanwhile_gets_what_the_import_would_have_noted(room: Room) -> None:
    argv = [sys.executable, "-c", STRUCK, "2", "prd", "import", "a.json", "--yes", "--verify", "true"]
    subprocess.run(argv, cwd=room.path, env=room.environment, capture_output=True, timeout=PATIENCE)
    assert room.raymond("prd", "status-init").returncode == 0
    assert status(room)["US-2"]["history"] == []
    room.raymond("prd", "import", "a.json", "--yes")
    assert [one["result"] for one in status(room)["US-2"]["history"]] == ["imported"]
    assert status(room)["US-1"]["history"] == []


@pytest.mark.slow
def test_what_a_file_calls_done_later_is_not_taken_over(room: Room) -> None:
    room.raymond("prd", "import", "a.json", "--yes")
    (room.path / "a.json").write_text(stories("a").replace("false", "true"), "utf-8")
    assert room.raymond("prd", "import", "a.json", "--yes").stdout.endswith("nothing is new\n")


@pytest.mark.slow
def test_imports_at_once_lose_nothing_and_give_no_id_twice(room: Room) -> None:
    make_private(room.project.root)
    lock = Path(room.project.root, "prd.lock")
    with ExitStack() as stack:
        with lock.open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            running = [
                stack.enter_context(room.start("prd", "import", name, "--yes"))
                for name in ("a.json", "b.json", "a.json")
            ]
            for one in running:
                one.sees("[Y/n] yes")  # each has read the documents
            assert os.listdir(room.path / "docs") == []
        assert [one.wait().code for one in running] == [0, 0, 0]
    found = prd.read((room.path / "docs/prd.md").read_text("utf-8")).stories
    assert sorted(one.title for one in found) == sorted(f"{name} {at}" for name in "ab" for at in range(1, 41))
    assert len({one.id for one in found}) == len(tasks(room)) == len({*tasks(room)}) == 80
    assert {*status(room)} == {one.id for one in found}


@pytest.mark.slow
def test_documents_that_change_while_a_person_reads_are_read_again(room: Room) -> None:
    typist = Typist(room, "prd", "import", "plan.md")
    typist.sees(r"\[Y/n\]")
    assert room.raymond("prd", "import", "a.json", "--yes").returncode == 0
    typist.type("y\n")
    assert typist.end() == 0
    assert "the documents have changed meanwhile; this is added now:" in typist.said
    assert len({one.id for one in prd.read((room.path / "docs/prd.md").read_text("utf-8")).stories}) == 41
    assert len({*tasks(room)}) == 42


def test_a_file_that_changes_while_a_person_reads_is_not_imported(room: Room) -> None:
    typist = Typist(room, "prd", "import", "plan.md")
    typist.sees(r"\[Y/n\]")
    (room.path / "plan.md").write_text(PLAN.replace("check.sh", "other.sh"), "utf-8")
    typist.type("y\n")
    assert typist.end() == 2
    assert "plan.md has changed meanwhile, so nothing was written" in typist.said
    assert os.listdir(room.path / "docs") == []


def test_without_a_terminal_nobody_says_yes(room: Room) -> None:
    done = room.raymond("prd", "import", "plan.md")
    assert done.returncode == 2
    assert done.stderr == (
        "error: nothing was written: there is nobody to ask here\nhint: if this is what you want, add --yes\n"
    )
    assert os.listdir(room.path / "docs") == []


@pytest.mark.slow
def test_a_plan_shows_its_check_and_keeps_its_context_and_its_ticks(room: Room) -> None:
    done = room.raymond("prd", "import", "plan.md", "--yes")
    assert done.stdout.startswith(
        "US-1: Nice plan\n"
        "  check of each task: sh check.sh; touch ../there\n"
        "  1.1.1. One (1 of 2 boxes are ticked in the file)\n"
        "  1.1.2. Two\n"
    )
    text = (room.path / "docs/prd.md").read_text("utf-8")
    assert "> Good.\n>\n> Context:\n> - files: `a.go`\n> " in text
    (story,) = prd.read(text).stories
    assert story.given
    assert story.given.kind == "tasks"
    spec = (room.path / "docs/implementation/1-imported/1.1-plan.md").read_text("utf-8")
    assert "> - [ ] a\n> - [x] b\n" in spec
