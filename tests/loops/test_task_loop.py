"""`raymond task-loop`: tasks of implementation specs, worked through and marked in place."""

import json
import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from looping import HONEST, WAIT, Night
from running import Ran

SPEC = "docs/implementation/1-core/1.4-answers.md"
TEXT = """# 1.4 Answers

What this is about stays as it is.

### 1.4.1. Write the answer

**Status:** 🔵 Planned
**Owner:** Ada
**Verification:**
- command: sh check.sh
- expected: 0
- timeout: 30s

Write the answer to answer.txt.

### 1.4.2. Explain it

**Status:** 🔵 Planned
**Verification:**
- command: cat why.txt
- expected: output contains "because"

### 1.4.3. Publish it

**Status:** ⏸️ Blocked (nobody has the password)
**Verification:**
- command: false
"""
BOTH = "echo 42 > answer.txt; echo because > why.txt; echo ITERATION_COMPLETE"


class Tasks(Night):
    """A night over a spec."""

    def __init__(self, path: Path, spec: str = TEXT, agent: str = BOTH, **files: str) -> None:
        super().__init__(path, agent=agent, **{SPEC.replace("/", "__"): spec, **files})

    def start(self, *args: str, verb: str = "start") -> Ran:
        return self.loop(*args, verb=verb, loop="task-loop")

    @property
    def spec(self) -> str:
        return self.text(SPEC)

    @property
    def told(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text("docs/.task-loop-state.json"))
        return found


def fields(text: str, id: str) -> dict[str, str]:
    """The fields of a task, as the spec has them."""
    section = re.split(r"(?m)^### ", text[text.index(f"### {id}. ") + 4 :])[0]
    return dict(re.findall(r"(?m)^\*\*([A-Z][A-Za-z ]+):\*\* ?(.*)$", section))


@pytest.mark.slow
def test_a_loop_that_was_killed_goes_on_with_its_task(tmp_path: Path) -> None:
    night = Tasks(tmp_path, agent=f"echo half > half.txt; touch $TEST_ROOM/../half\n{WAIT}{BOTH}")
    with night.room.start("task-loop", "start", "--id", "n", "--pause", "0s") as live:
        live.sees("Selected item")
        while not (tmp_path / "half").exists():
            assert live.process.poll() is None
        live.signal(signal.SIGKILL)
        live.process.wait()
        night.room.clear()
    assert night.told["status"] == "running"
    assert night.told["currentTask"] == "1.4.1"
    (tmp_path / "go").touch()
    night.agent(BOTH)
    done = night.start(verb="resume")
    assert "Found in-progress loop (task 1/10). Resume? [Y/n] yes" in done.err
    assert done.code == 0, done.err
    assert [one["id"] for one in night.told["completedTasks"]] == ["1.4.1", "1.4.2"]
    assert night.subjects.count("feat: write the answer (1.4.1)") == 1


# Agents that cheat


CHEATS: Mapping[str, tuple[str, str]] = {
    "its own check": ("sed -i 's/sh check.sh/true/' SPEC", "changed the check of task 1.4.1"),
    "another check": ("sed -i 's/cat why.txt/echo because/' SPEC", "changed the check of task 1.4.2"),
    "another task": ("sed -i '/1.4.2/,$ s/🔵 Planned/✅ Complete/' SPEC", "changed task 1.4.2"),
    "removes a task": ("sed -i '/### 1.4.2/,/because/d' SPEC", "removed task 1.4.2"),
}


@pytest.mark.slow
@pytest.mark.parametrize("cheat", CHEATS)
def test_an_agent_cannot_change_what_decides_about_tasks(tmp_path: Path, cheat: str) -> None:
    does, told = CHEATS[cheat]
    night = Tasks(tmp_path, agent=f"{does.replace('SPEC', SPEC)}; echo ITERATION_COMPLETE")
    done = night.start("--attempts", "1")
    assert done.code == 1
    assert f"the agent {told}" in done.out
    assert [one["id"] for one in night.told["failedTasks"]] == ["1.4.1", "1.4.2"], "nothing of it counts"
    assert "- command: sh check.sh" in night.spec
    assert "- command: cat why.txt" in night.spec


@pytest.mark.slow
def test_every_version_of_a_document_that_is_put_back_is_kept(tmp_path: Path) -> None:
    agent = f"""
        n=$(($(cat $TEST_ROOM/../n 2>/dev/null || echo 0) + 1)); echo $n > $TEST_ROOM/../n; echo $n > work.txt
        [ $n = 3 ] && echo "last words" >> {SPEC} || echo "first words" >> {SPEC}
        [ $n = 3 ] && echo 42 > answer.txt; echo ITERATION_COMPLETE
    """
    night = Tasks(tmp_path, agent=agent)
    done = night.start("--task", "1.4.1", "--attempts", "3")
    assert done.code == 0, done.out
    assert "words" not in night.spec
    kept = [f"refs/raymond/n/{one}" for one in ("1.1", "1.documents")]
    words = [night.git("show", f"{one}:{SPEC}").splitlines()[-1] for one in kept]
    assert words == ["first words", "last words"]


@pytest.mark.slow
def test_an_agent_may_mark_its_own_task_and_it_counts_for_nothing(tmp_path: Path) -> None:
    mark = f"sed -i '0,/🔵 Planned/s//✅ Complete\\n**Verified:** true/' {SPEC}"
    does = f"grep -q Verified {SPEC} || {mark}; echo ITERATION_COMPLETE"
    night = Tasks(tmp_path, agent=does)
    done = night.start("--attempts", "1", "--task", "1.4.1")
    assert done.code == 1
    assert "## Noticed" not in done.out, "that is no offence"
    assert fields(night.spec, "1.4.1")["Verified"] == "false"


@pytest.mark.slow
def test_a_task_that_an_agent_adds_is_only_proposed(tmp_path: Path) -> None:
    added = r"printf '\n### 1.4.9. Easy\n\n**Verification:** `true`\n' >> " + SPEC
    night = Tasks(tmp_path, agent=f"{added}; {BOTH}")
    done = night.start("--task", "1.4.1")
    assert done.code == 0, done.err
    assert "1.4.9" not in night.spec
    assert f'"1.4.9. Easy" was added to {SPEC} while an agent worked; it counts as proposed' in done.out
    assert "- 1.4.9. Easy: proposed by an agent for the queue" in done.out
    assert "*proposed* [VERIFY: `true`] 1.4.9. Easy" in night.text(f"docs/session_logs/{night.logs[-1]}")


# Lines


@pytest.mark.slow
def test_lines_of_a_spec_keep_their_endings(tmp_path: Path) -> None:
    night = Tasks(tmp_path)
    (night.path / SPEC).write_bytes(TEXT.replace("\n", "\r\n").encode())
    night.commit("crlf")
    assert night.start().code == 0
    raw = subprocess.check_output(["git", "show", f"raymond/n:{SPEC}"], cwd=night.path)
    assert raw.count(b"\r\n") == raw.count(b"\n") == TEXT.count("\n") + 2


# The queue of sessions


@pytest.mark.slow
def test_an_item_is_done_when_its_tasks_are_verified(tmp_path: Path) -> None:
    queue = "1. [VERIFY: task-loop] Answer and explain\n   - Tasks: 1.4.1, 1.4.2\n"
    night = Tasks(
        tmp_path, **{"docs/session_logs/20250117_0900_session.md".replace("/", "__"): f"## Next Steps\n\n{queue}"}
    )
    done = night.loop()
    assert done.code == 0, done.err
    assert "Answer and explain (passed: `sh check.sh && cat why.txt`" in done.out
    assert fields(night.spec, "1.4.1")["Verified"].startswith("true (")
    assert fields(night.spec, "1.4.2")["Verified"].startswith("true (")


@pytest.mark.slow
def test_an_item_whose_tasks_are_not_there_is_passed_over(tmp_path: Path) -> None:
    queue = "1. [VERIFY: task-loop] Something\n   - Tasks: 7.7.7\n2. [VERIFY: sh check.sh] Write the answer\n"
    night = Tasks(
        tmp_path,
        agent=HONEST,
        **{"docs/session_logs/20250117_0900_session.md".replace("/", "__"): f"## Next Steps\n\n{queue}"},
    )
    done = night.loop()
    assert "Something: there is no task 7.7.7" in done.out
