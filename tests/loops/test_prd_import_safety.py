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


def planted(room: Room, more: str = "", *, command: str = "true", status: str = "🔵 Planned") -> None:
    """A spec that says of itself that an import has written it."""
    folder = room.path / "docs/implementation/9-x"
    folder.mkdir(parents=True)
    (folder / "9.9-y.md").write_text(
        f"# 9.9 y\n\n## 9.9.9. c 7\n<!-- raymond import c.json/US-7 -->\n\n**Status:** {status}\n{more}"
        f"**Implements:** US-7\n**Verification:**\n- command: `{command}`\n- expected: 0\n",
        "utf-8",
    )
    one = {"id": "US-7", "title": "c 7", "acceptanceCriteria": [], "priority": 1}
    (room.path / "c.json").write_text(json.dumps({"userStories": [one]}), "utf-8")


def test_a_task_that_is_there_already_with_another_check_is_refused(room: Room) -> None:
    planted(room, "**Verified:** true\n", status="✅ Complete")
    done = room.raymond("prd", "import", "c.json", "--verify", "npm test", "--yes")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: docs/implementation/9-x/9.9-y.md:3: 9.9.9 is there already, with another check: `true` instead of"
        " `npm test`\nhint: remove that task, then import again, or keep its check: --verify true\n"
    )
    assert not (room.path / "docs/prd.md").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "status", "told"),
    [
        ("", "✅ Complete", "and is marked as complete, which c.json does not say"),
        ("**Verified:** true\n", "🔵 Planned", "and is marked as verified, which c.json does not say"),
        ("", "🔵 Planned\n**Proposed:** no\n**Context:** x\n", ""),
        ("**Implements:** US-7, US-8\n", "🔵 Planned", "but not as it would be written"),
    ],
)
def test_a_task_that_is_there_already_is_taken_only_as_the_import_would_write_it(
    room: Room, more: str, status: str, told: str
) -> None:
    planted(room, more, command="npm test", status=status)
    done = room.raymond("prd", "import", "c.json", "--verify", "npm test", "--yes")
    if told:
        assert (done.returncode, done.stdout) == (2, "")
        assert f"docs/implementation/9-x/9.9-y.md:3: 9.9.9 is there already, {told}\n" in done.stderr
    else:
        assert done.stdout.startswith(
            "US-7: c 7\n"
            "  9.9.9. npm test (there already: docs/implementation/9-x/9.9-y.md:3, 🔵 Planned)\n"
            "added 1 story to docs/prd.md\n"
        )
        assert done.stderr.startswith(
            "Add 1 story to docs/prd.md, with tasks in docs/implementation/9-x/9.9-y.md? [Y/n] yes\n"
        )


@pytest.mark.slow
def test_two_files_of_one_name_are_not_taken_for_each_other(room: Room) -> None:
    for folder in ("pa", "pb"):
        other = room.path.parent / folder
        other.mkdir()
        (other / "prd.json").write_text(stories(folder, 2), "utf-8")
    assert room.raymond("prd", "import", "../pa/prd.json", "--yes").returncode == 0
    done = room.raymond("prd", "import", "../pb/prd.json", "--yes")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: prd.json/US-1 was imported before with another title: docs/prd.md:5: pa 1\n"
        "hint: if `pb 1` is another story, give the file another name and import it;"
        " if it is the same, give both the same title\n"
    )
    (room.path.parent / "pb/prd.json").rename(room.path.parent / "pb/other.json")
    assert room.raymond("prd", "import", "../pb/other.json", "--yes").returncode == 0
    assert len(status(room)) == 4


@pytest.mark.slow
def test_a_story_whose_title_a_person_has_changed_was_imported_before(room: Room) -> None:
    room.raymond("prd", "import", "a.json", "--yes")
    path = room.path / "docs/prd.md"
    path.write_text(path.read_text("utf-8").replace(": a 1\n", ": Something better\n"), "utf-8")
    assert room.raymond("prd", "import", "a.json", "--yes").stdout.endswith("nothing is new\n")


@pytest.mark.parametrize("around", ["{}", "```\n{}\n```"])
def test_a_mark_that_is_no_story_leaves_none_out(room: Room, around: str) -> None:
    mark = around.format("<!-- raymond import a.json/US-1 -->")
    (room.path / "docs/prd.md").write_text(f"# Shop\n\n{mark}\n", "utf-8")
    done = room.raymond("prd", "import", "a.json", "--yes", "--verify", "true")
    assert done.returncode == 0, done.stderr
    assert len(prd.read((room.path / "docs/prd.md").read_text("utf-8")).stories) == 40
