"""Tasks and stories in internal mode: handed out, checked and marked as by Raymond's own agents."""

import json
from pathlib import Path

import pytest

from inside import Inside

pytestmark = pytest.mark.slow

SPEC = "docs/implementation/1-core/1.1-answers.md"
TASKS = """### 1.1.1. Write the answer

**Status:** 🔵 Planned
**Verification:** `sh check.sh`
**Implements:** US-1

### 1.1.2. Explain it

**Status:** ✅ Complete
**Verification:**
- command: cat why.txt
- expected: output contains "because"
**Implements:** US-1
"""
PRD = "## User Stories\n\n### US-1: The answer\n\n**Verification:** tasks\n"


def plan(path: Path, loop: str) -> Inside:
    inside = Inside(path, loop=loop, **{SPEC.replace("/", "__"): TASKS, "docs__prd.md": PRD})
    assert inside.room.raymond("prd", "status-init", "--yes").returncode == 0
    inside.commit("status")
    return inside


def test_tasks_are_handed_out_and_marked_in_their_spec(tmp_path: Path) -> None:
    inside = plan(tmp_path, "task-loop")
    first = inside.begin()
    assert first["title"] == "1.1.1. Write the answer"
    assert first["prompt"].startswith("You are continuing an autonomous task loop.\n")
    assert f"Current state file: {inside.path}/docs/.task-loop-state.json" in first["prompt"]
    assert f"This stands in {SPEC}." in first["prompt"]
    inside.work({"answer.txt": "42\n", SPEC: inside.text(SPEC).replace("cat why.txt", "echo because")})
    assert inside.record()["verdict"] == "passed"
    assert inside.text(SPEC).count("**Verified:** true (") == 1
    assert "- command: cat why.txt" in inside.text(SPEC), "what it did to the other check does not count"
    second = inside.next()
    assert (second["check"], second["attempt"]) == ("cat why.txt", 1)
    assert "It is marked as done, but its check says otherwise" in second["prompt"]
    again = inside.record()
    assert (again["status"], again["attempt"]) == ("item", 2)
    inside.work({"why.txt": "because\n"})
    end = inside.record()
    assert (end["status"], end["verdict"]) == ("done", "passed")
    assert inside.text(SPEC).count("**Verified:** true (") == 2


def test_a_story_is_handed_out_and_recorded(tmp_path: Path) -> None:
    inside = plan(tmp_path, "story-loop")
    first = inside.begin("--max-stories", "1")
    assert (first["title"], first["most"]) == ("US-1: The answer", 1)
    assert "Task 1.1.1. Write the answer" in first["prompt"]
    inside.work({"answer.txt": "42\n", "why.txt": "because\n"})
    assert inside.record()["ended"].startswith("completed")
    [story] = json.loads(inside.text("docs/prd-status.json"))["stories"]
    assert (story["passes"], [one["result"] for one in story["history"]]) == (True, ["passed"])
    assert inside.text(SPEC).count("**Verified:** true (") == 2


def test_loops_of_different_kinds_go_side_by_side(tmp_path: Path) -> None:
    inside = plan(tmp_path, "task-loop")
    inside.begin()
    inside.agent("echo 42 > answer.txt; echo ITERATION_COMPLETE")
    assert inside.loop("--id", "s", "--max-sessions", "1").code == 0
    inside.work({"answer.txt": "42\n"})
    assert inside.record()["verdict"] == "passed"
