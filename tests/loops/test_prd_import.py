"""`raymond prd import`: stories of other tools become stories and tasks here, once."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from raymond.loops.formats import prd, task_spec
from raymond.loops.formats.task_spec import Task
from running import Room

RALPH = {
    "project": "Shop",
    "branchName": "ralph/shop",
    "userStories": [
        {
            "id": "US-001",
            "title": "Log in",
            "description": "As a user, I want to log in.\n**Verification:** `true`",
            "acceptanceCriteria": ["a wrong password is refused"],
            "priority": 1,
            "passes": True,
        },
        {"id": "US-2", "title": "Pay", "acceptanceCriteria": ["paid"], "priority": 2, "dependsOn": ["US-001"]},
    ],
}
FIX = "# Fixes\n## High Priority\n- [ ] Handle empty input\n- [x] Log errors\n"
RALPHEX = """# Plan: Add auth
## Overview
Add JWT.
## Validation Commands
- `go test ./...`
- `golangci-lint run`
### Task 1: Middleware
- [x] write it
### Task 2: Log in
- [x] look at it
- [ ] write that
"""
MINE = "# Mine\n\n## User Stories\n\n### US-2: Search\n\n**Verification:** `sh search.sh`\n\n## Notes\n\nKeep me.\n"


def room_with(tmp_path: Path, **files: str) -> Room:
    room = Room(tmp_path)
    (room.path / "docs").mkdir()
    for name, text in {
        "prd__json": json.dumps(RALPH, indent=1),
        "fix_plan__md": FIX,
        "plan__md": RALPHEX,
        **files,
    }.items():
        (room.path / name.replace("__", ".")).write_text(text, "utf-8")
    return room


def text(room: Room, name: str) -> str:
    return (room.path / "docs" / name).read_text("utf-8")


def tasks(room: Room, name: str) -> tuple[Task, ...]:
    return task_spec.read(text(room, name)).tasks


def status(room: Room) -> dict[str, dict[str, Any]]:
    return {one["id"]: one for one in json.loads(text(room, "prd-status.json"))["stories"]}


def everything(room: Room) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in (room.path / "docs").rglob("*") if path.is_file()}


def test_a_prd_json_becomes_stories_with_a_task_each(tmp_path: Path) -> None:
    room = room_with(tmp_path)
    (room.path / "docs/prd.md").write_text(MINE, "utf-8")
    done = room.raymond("prd", "import", "prd.json", "--yes")
    assert done.stdout == (
        "US-001: Log in (done according to the file)\n"
        "  1.1.1. manual\n"
        "US-3: Pay\n"
        "  1.1.2. manual\n"
        "wrote docs/implementation/1-imported/1.1-prd.md: 2 tasks\n"
        "added 2 stories to docs/prd.md\n"
        "wrote docs/prd-status.json: 3 stories (0 passed, 0 failed, 3 pending)\n"
    )
    assert done.stderr == (
        "warning: there is no check, so a person has to verify each task: --verify COMMAND sets one\n"
        "Add 2 stories to docs/prd.md, with tasks in docs/implementation/1-imported/1.1-prd.md? [Y/n] yes\n"
    )
    search, log_in, pay = prd.read(text(room, "prd.md")).stories
    assert text(room, "prd.md").startswith(MINE.partition("## Notes")[0])
    assert text(room, "prd.md").endswith("\n## Notes\n\nKeep me.\n")
    assert (search.id, log_in.id, pay.id) == ("US-2", "US-001", "US-3"), "an id that is taken is not kept"
    assert (log_in.want, log_in.criteria, log_in.priority) == (
        "to log in. Verification: `true`",
        ("a wrong password is refused",),
        1,
    )
    assert (pay.depends_on, pay.priority, pay.implemented_by) == (("US-001",), 2, ("1.1.2",))
    assert pay.given
    assert pay.given.kind == "tasks"
    first, second = tasks(room, "implementation/1-imported/1.1-prd.md")
    assert (first.status, first.verified, first.is_manual, first.implements) == ("complete", False, True, ("US-001",))
    assert (second.status, second.criteria) == ("planned", ("paid",))


def test_what_others_call_done_is_pending_until_it_is_verified(tmp_path: Path) -> None:
    room = room_with(tmp_path)
    room.raymond("prd", "import", "prd.json", "--yes")
    found = status(room)
    assert found["US-001"]["passes"] is False
    (noted,) = found["US-001"]["history"]
    assert (noted["result"], noted["notes"]) == ("imported", "done according to prd.json; not verified yet")
    assert found["US-2"]["history"] == []


@pytest.mark.parametrize("file", ["prd.json", "fix_plan.md", "plan.md"])
def test_the_same_file_again_adds_nothing(tmp_path: Path, file: str) -> None:
    room = room_with(tmp_path)
    assert room.raymond("prd", "import", file, "--yes").returncode == 0
    before = everything(room)
    again = room.raymond("prd", "import", f"./{file}", "--verify", "true", "--yes")
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.endswith("nothing is new\n")
    assert everything(room) == before


def test_a_file_that_has_grown_adds_what_is_new(tmp_path: Path) -> None:
    room = room_with(tmp_path)
    room.raymond("prd", "import", "prd.json", "--yes")
    more = {**RALPH, "userStories": [*RALPH["userStories"], {"id": "US-3", "title": "Ship", "dependsOn": ["US-2"]}]}
    (room.path / "prd.json").write_text(json.dumps(more), "utf-8")
    done = room.raymond("prd", "import", "prd.json", "--verify", "sh ship.sh | tee log", "--yes")
    assert done.stdout.startswith(
        "imported before, and left as it is: 2 stories\nUS-3: Ship\n  1.2.1. sh ship.sh | tee log\n"
    )
    ship = prd.read(text(room, "prd.md")).stories[-1]
    assert (ship.id, ship.depends_on, ship.implemented_by) == ("US-3", ("US-2",), ("1.2.1",))
    (task,) = tasks(room, "implementation/1-imported/1.2-prd.md")
    assert task.check
    assert task.check.run == "sh ship.sh | tee log"


@pytest.mark.slow
def test_a_checklist_and_a_plan_come_into_the_same_area(tmp_path: Path) -> None:
    room = room_with(tmp_path)
    (room.path / "docs/implementation/4-mine").mkdir(parents=True)
    room.raymond("prd", "import", "fix_plan.md", "--verify", "npm test", "--yes")
    done = room.raymond("prd", "import", "plan.md", "--yes")
    assert done.stdout.startswith(
        "US-3: Add auth\n"
        "  check of each task: go test ./... && golangci-lint run\n"
        "  5.2.1. Middleware (done according to the file)\n"
        "  5.2.2. Log in (1 of 2 boxes are ticked in the file)\n"
    )
    assert [one.check and one.check.run for one in tasks(room, "implementation/5-imported/5.1-fix-plan.md")] == [
        "npm test"
    ] * 2
    first, second = tasks(room, "implementation/5-imported/5.2-plan.md")
    assert first.check == second.check
    assert first.check
    assert first.check.run == "go test ./... && golangci-lint run"
    assert (first.status, second.status) == ("complete", "planned")
    plan = prd.read(text(room, "prd.md")).stories[-1]
    assert (plan.title, plan.implemented_by, plan.criteria) == (
        "Add auth",
        ("5.2.1", "5.2.2"),
        ("Middleware", "Log in"),
    )
    assert room.raymond("prd", "status-init").stderr == "", "every link leads somewhere"


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    room = room_with(tmp_path)
    done = room.raymond("prd", "import", "prd.json", "--dry-run")
    assert done.stdout.endswith("US-2: Pay\n  1.1.2. manual\nnothing was written\n")
    assert everything(room) == {}


@pytest.mark.slow
@pytest.mark.parametrize("file", ["prd.json", "plan.md"])
def test_an_import_that_was_cut_off_is_completed(tmp_path: Path, file: str) -> None:
    room = room_with(tmp_path)
    room.raymond("prd", "import", file, "--yes")
    whole = everything(room)
    for name in ("prd.md", "prd-status.json"):
        (room.path / "docs" / name).unlink()
    done = room.raymond("prd", "import", file, "--yes")
    assert done.returncode == 0
    again = everything(room)
    assert again.keys() == whole.keys()
    assert text(room, "prd.md").encode() == whole[str(room.path / "docs/prd.md")]


@pytest.mark.slow
def test_an_id_that_the_status_remembers_is_not_given_again(tmp_path: Path) -> None:
    room = room_with(tmp_path)
    (room.path / "docs/prd-status.json").write_text('{"stories": [{"id": "US-001"}, {"id": "US-8"}]}', "utf-8")
    done = room.raymond("prd", "import", "prd.json", "--yes")
    assert "US-9: Log in" in done.stdout
    assert "US-2: Pay" in done.stdout
    assert status(room)["US-001"]["removed"] is True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content", "more", "said"),
    [
        ("a.json", '{"userStories": [\n{"id": 1}]}', [], "error: a.json:2: `userStories[0]` has no `title`\nhint: it was read as prd-json: fix it, or if it is something else, --as fix-plan or --as ralphex\n"),
        ("a.json", "{\n", [], "error: a.json:2: it is not valid JSON: Expecting property name enclosed in double quotes\n"),
        ("a.md", "text\n", [], "error: a.md:1: this is neither a prd.json, nor a checklist, nor a plan of ralphex\nhint: --as prd-json|fix-plan|ralphex says what it is meant to be\n"),
        ("a.md", "- [ ] a\n", ["--as", "ralphex"], "error: a.md:1: no heading is like `### Task 1: Title`\n"),
        ("a.md", "- [ ] a\n\udcff\n", [], "error: a.md:2: this is not UTF-8\nhint: save it as UTF-8\n"),
        ("a.md", "- [ ] a\n", ["--verify", "a\nb"], "error: --verify is one line\n"),
    ],
)  # fmt: skip
def test_what_cannot_be_imported_is_refused_with_its_place(
    tmp_path: Path, name: str, content: str, more: list[str], said: str
) -> None:
    room = room_with(tmp_path)
    (room.path / name).write_text(content, "utf-8", "surrogateescape")
    done = room.raymond("prd", "import", name, *more, "--yes")
    assert done.returncode == 2
    assert done.stderr.startswith(said)
    assert everything(room) == {}


@pytest.mark.slow
def test_a_file_that_is_not_there_and_a_prd_that_hides_what_follows_are_refused(tmp_path: Path) -> None:
    room = room_with(tmp_path)
    os.mkfifo(room.path / "pipe")
    for name, said in (
        ("docs", "docs is not a file"),
        ("pipe", "pipe is not a file"),
        ("no", "no: no such file or directory"),
    ):
        done = room.raymond("prd", "import", name, "--yes")
        assert (done.returncode, done.stderr.splitlines()[0]) == (2, f"error: {said}")
    (room.path / "docs/prd.md").write_text("# P\n<!-- open\n", "utf-8")
    done = room.raymond("prd", "import", "prd.json", "--yes")
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error: docs/prd.md:2: this comment is not closed")
    os.replace(room.path / "docs/prd.md", room.path / "other.md")
    os.symlink(room.path / "other.md", room.path / "docs/prd.md")
    done = room.raymond("prd", "import", "prd.json", "--yes")
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error: docs/prd.md is not a file")
    assert (room.path / "other.md").read_text("utf-8") == "# P\n<!-- open\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("docs", "error: --docs docs is not in this repository"),
        ("docs/implementation", "error: docs/implementation is not a folder"),
    ],
)
def test_a_folder_that_leads_elsewhere_is_not_written_to(tmp_path: Path, name: str, said: str) -> None:
    room = room_with(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (room.path / "docs").rmdir()
    (room.path / name).parent.mkdir(exist_ok=True)
    os.symlink(elsewhere, room.path / name)
    for command in (["import", "prd.json", "--yes"], ["status-init"]):
        done = room.raymond("prd", *command)
        assert (done.returncode, done.stderr.splitlines()[0]) == (2, said)
    assert not [*elsewhere.iterdir()]
