"""Tasks and stories from the inside: handed out, checked and marked as in a loop that has agents of its own."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from looping import Night

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
DONE = "## Summary\nI did it.\n\nITERATION_COMPLETE\n"


class Inside(Night):
    """A repository with a plan, and somebody who does its items by hand."""

    def __init__(self, path: Path, loop: str) -> None:
        super().__init__(path, **{SPEC.replace("/", "__"): TASKS, "docs__prd.md": PRD})
        self._loop = loop
        assert self.room.raymond("prd", "status-init", "--yes").returncode == 0
        self.commit("status")

    def ask(self, verb: str, *args: str, said: str = "") -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-m", "raymond", self._loop, verb, "--json", *args],
            cwd=self.path,
            env=self.room.environment,
            capture_output=True,
            text=True,
            check=False,
            input=said,
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found


@pytest.mark.slow
def test_tasks_are_handed_out_and_marked_in_their_spec(tmp_path: Path) -> None:
    inside = Inside(tmp_path, "task-loop")
    first = inside.ask("next", "--id", "n")
    assert first["item"]["title"] == "1.1.1. Write the answer"
    assert first["prompt"].startswith("You are continuing an autonomous task loop.\n")
    assert "Current state file: docs/.task-loop-state.json" in first["prompt"]
    assert "Continue the task loop." in first["prompt"]
    inside.write({"answer.txt": "42\n", SPEC: inside.text(SPEC).replace("cat why.txt", "echo because")})
    assert inside.ask("record", said=DONE)["verdict"] == "passed"
    assert "**Verified:** true (" in inside.text(SPEC)
    assert "- command: cat why.txt" in inside.text(SPEC), "what it did to the other check does not count"
    second = inside.ask("next")
    assert second["item"]["check"] == "cat why.txt"
    again = inside.ask("record", said=DONE)
    assert (again["status"], inside.text(SPEC).count("**Verified:** true (")) == ("again", 1)
    inside.ask("next")
    inside.write({"why.txt": "because\n"})
    done = inside.ask("record", said=DONE)
    assert (done["verdict"], done["next"]) == ("passed", False)
    assert inside.text(SPEC).count("**Verified:** true (") == 2
    assert inside.ask("next")["status"] == "done"


@pytest.mark.slow
def test_a_story_is_handed_out_and_recorded(tmp_path: Path) -> None:
    inside = Inside(tmp_path, "story-loop")
    first = inside.ask("next", "--id", "n", "--max-stories", "1")
    assert (first["item"]["title"], first["most"]) == ("US-1: The answer", 1)
    assert "## Task 1.1.1. Write the answer" in first["prompt"]
    inside.write({"answer.txt": "42\n", "why.txt": "because\n"})
    assert inside.ask("record", said=DONE)["verdict"] == "passed"
    [story] = json.loads(inside.text("docs/prd-status.json"))["stories"]
    assert (story["passes"], [one["result"] for one in story["history"]]) == (True, ["passed"])
    assert inside.text(SPEC).count("**Verified:** true (") == 2
    assert inside.ask("next")["ended"].startswith("completed")


@pytest.mark.slow
def test_no_other_loop_begins_while_an_item_is_handed_out(tmp_path: Path) -> None:
    inside = Inside(tmp_path, "task-loop")
    inside.ask("next", "--id", "n")
    inside.write({"PROMPT.md": "Do it.\n"})
    for command in (("ralph", "PROMPT.md"), ("continuous-session", "start"), ("story-loop", "next")):
        done = inside.room.raymond(*command)
        assert done.returncode == 2
        assert "an item of n is handed out to another program" in done.stderr
