"""Loops over tasks and stories that are killed with -9 at any point: what the documents say is right, once."""

import json
import os
import re
import signal
from pathlib import Path

import pytest

from looping import Night
from running import until

SPEC = "docs/implementation/1-core/1.1-answers.md"
TASKS = """### 1.1.1. Write the answer

**Status:** 🔵 Planned
**Verification:** `sh check.sh`
**Implements:** US-1

### 1.1.2. Do the impossible

**Status:** 🔵 Planned
**Verification:** `grep -q never answer.txt`
**Implements:** US-2
"""
PRD = """## User Stories

### US-1: The answer

**Verification:** tasks

### US-2: The impossible

**Verification:** tasks
"""
AGENT = """
if grep -q '^# 1.1.1' "$PROMPT"; then echo 42 > answer.txt; else echo try >> tries.txt; fi
echo ITERATION_COMPLETE
"""
POINTS = os.environ.get("RAYMOND_KILLS", "13,25,36")


def begun(path: Path) -> Night:
    night = Night(path, agent=AGENT, **{SPEC.replace("/", "__"): TASKS, "docs__prd.md": PRD})
    assert night.room.raymond("prd", "status-init", "--yes").returncode == 0
    night.commit("status")
    return night


def kill_at(night: Night, count: int, *command: str) -> bool:
    """Kill the process that drives the loop once so many decisions are on the disk; whether it was still there."""
    journal = night.room.folder("n") / "journal.jsonl"

    def decisions() -> int:
        return journal.read_bytes().count(b"\n") if journal.exists() else 0

    with night.room.start(*command, "start", "--id", "n", "--pause", "0s", "--attempts", "1") as live:
        until(lambda: decisions() >= count or live.process.poll() is not None, f"{count} decisions")
        ended = live.process.poll() is not None
        if not ended:
            live.signal(signal.SIGKILL)
            live.process.wait()
    return not ended


@pytest.mark.slow
@pytest.mark.parametrize("count", [int(one) for one in POINTS.split(",")])
def test_a_task_loop_that_is_killed_marks_each_task_once(tmp_path: Path, count: int) -> None:
    night = begun(tmp_path)
    flags = ("--on-fail", "create-fix-task", "--max-iterations", "2")
    with night.room.start("task-loop", "start", "--id", "n", "--pause", "0s", "--attempts", "1", *flags) as live:
        journal = night.room.folder("n") / "journal.jsonl"
        until(
            lambda: (
                (journal.exists() and journal.read_bytes().count(b"\n") >= count) or live.process.poll() is not None
            ),
            f"{count} decisions",
        )
        if live.process.poll() is None:
            live.signal(signal.SIGKILL)
            live.process.wait()
    night.loop("--yes", verb="resume", loop="task-loop")
    spec = night.text(SPEC)
    assert re.findall(r"(?m)^### ([0-9.a-z]+)\. ", spec) == ["1.1.1", "1.1.2", "1.1.2a"], "one fix task"
    assert spec.count("**Verified:** true (") == 1
    assert spec.count("**Last Attempt:**") == 1
    assert night.subjects == ["start", "status", "feat: write the answer (1.1.1)", *["chore(loop): records"] * 2]
    assert night.git("status", "--porcelain") == ""
    failures = night.text("docs/failures.md")
    assert failures.count("**Action Taken:** Created fix task 1.1.2a") == 1
    night.room.nothing_runs()


@pytest.mark.slow
@pytest.mark.parametrize("count", [int(one) for one in POINTS.split(",")])
def test_a_story_loop_that_is_killed_records_each_story_once(tmp_path: Path, count: int) -> None:
    night = begun(tmp_path)
    night.agent(AGENT.replace("^# 1.1.1", "^# US-1"))
    kill_at(night, count, "story-loop")
    night.loop("--yes", verb="resume", loop="story-loop")
    found = {one["id"]: one for one in json.loads(night.text("docs/prd-status.json"))["stories"]}
    assert [one["result"] for one in found["US-1"]["history"]] == ["passed"]
    assert [one["result"] for one in found["US-2"]["history"]] == ["failed"]
    assert (found["US-1"]["passes"], found["US-2"]["passes"]) == (True, False)
    assert night.subjects == ["start", "status", "feat: the answer (US-1)", *["chore(loop): records"] * 2]
    assert night.git("status", "--porcelain") == ""
    night.room.nothing_runs()
