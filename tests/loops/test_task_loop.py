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


def test_tasks_are_done_in_order_verified_and_marked_in_place(tmp_path: Path) -> None:
    night = Tasks(tmp_path)
    done = night.start()
    assert done.code == 0, done.err
    assert fields(night.spec, "1.4.1")["Status"] == "✅ Complete"
    assert re.fullmatch(r"true \(\d{4}-\d\d-\d\d, sh check\.sh\)", fields(night.spec, "1.4.1")["Verified"])
    assert re.fullmatch(r"true \(\d{4}-\d\d-\d\d, cat why\.txt\)", fields(night.spec, "1.4.2")["Verified"])
    assert "[BLOCKED: nobody has the password] 1.4.3. Publish it" in night.start(verb="status").out
    kept = [line for line in night.spec.splitlines() if not line.startswith(("**Status:**", "**Verified:**"))]
    assert kept == [line for line in TEXT.splitlines() if not line.startswith("**Status:**")]
    assert night.subjects[1:] == ["feat: write the answer (1.4.1)", "docs: explain it (1.4.2)", "chore(loop): records"]
    assert night.git("status", "--porcelain") == ""
    told = night.told
    assert (told["status"], told["maxIterations"], told["currentIteration"]) == ("complete", 10, 2)
    assert told["scope"] == {"area": "", "taskGroup": ""}
    assert [(one["id"], one["verified"]) for one in told["completedTasks"]] == [("1.4.1", True), ("1.4.2", True)]
    assert len(night.logs) == 2, "one log for all tasks, beside the one that was there"
    log = night.text(f"docs/session_logs/{night.logs[-1]}")
    assert log.count("### 1.4.1. Write the answer")
    assert log.count("### 1.4.2. Explain it")
    assert "1. [VERIFY: sh check.sh] Write the answer" in log, "the queue of sessions is handed on"


@pytest.mark.slow
def test_what_is_expected_of_a_check_decides(tmp_path: Path) -> None:
    night = Tasks(tmp_path, agent="echo 42 > answer.txt; echo so > why.txt; echo ITERATION_COMPLETE")
    done = night.start("--attempts", "1")
    assert done.code == 1
    assert 'printed no "because"' in done.out
    failed = fields(night.spec, "1.4.2")
    assert (failed["Status"], failed["Verified"]) == ("🟡 In Progress", "false")
    assert "Last Attempt" in failed
    assert night.told["failedTasks"][0]["id"] == "1.4.2"


@pytest.mark.slow
def test_a_fix_task_repairs_what_failed_and_verifies_both(tmp_path: Path) -> None:
    agent = f'if grep -q "# 1.4.1a" "$PROMPT"; then cp "$PROMPT" "$TEST_ROOM/../fix"; {BOTH}; else echo ITERATION_COMPLETE; fi'
    night = Tasks(tmp_path, agent=agent)
    done = night.start("--attempts", "1", "--task", "1.4.1", "--on-fail", "create-fix-task")
    assert "### 1.4.1a. Fix: Write the answer Verification" in night.spec
    assert fields(night.spec, "1.4.1a")["Verified"].startswith("true (")
    assert fields(night.spec, "1.4.1")["Verified"].startswith("true ("), "it has the same check"
    assert "**Action Taken:** Created fix task 1.4.1a" in night.text("docs/failures.md")
    prompt = (tmp_path / "fix").read_text("utf-8")
    assert "sh check.sh" in prompt, "the agent is told what failed"
    assert "exit code" in prompt, "and how"
    assert night.spec.index("### 1.4.1a.") < night.spec.index("### 1.4.2.")
    assert [one["id"] for one in night.told["completedTasks"]] == ["1.4.1a"]
    assert "; repaired by 1.4.1a\n" in done.out
    assert done.code == 0, "what failed is repaired"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "taken"),
    [
        (("--area", "1"), ["1.4.1", "1.4.2"]),
        (("--area", "2"), ["2.1.1"]),
        (("--task-group", "1.4"), ["1.4.1", "1.4.2"]),
        (("--task", "1.4.2"), ["1.4.2"]),
        ((), ["1.4.1", "1.4.2", "2.1.1"]),
    ],
)
def test_the_scope_says_which_tasks_are_taken(tmp_path: Path, flags: tuple[str, ...], taken: list[str]) -> None:
    other = "## 2.1.1. Another\n\n**Verification:** `true`\n"
    night = Tasks(tmp_path, **{"docs/implementation/2-more/2.1-other.md".replace("/", "__"): other})
    done = night.start("--dry-run", "--json", *flags)
    assert [one["title"].partition(". ")[0] for one in json.loads(done.out)["items"]] == taken


@pytest.mark.slow
def test_one_that_is_called_complete_is_checked_before_an_agent_is_paid(tmp_path: Path) -> None:
    spec = TEXT.replace("🔵 Planned", "✅ Complete", 1)
    night = Tasks(tmp_path, spec, agent="echo called >> $TEST_ROOM/../called; " + BOTH, answer__txt="42\n")
    night.git("mv", "answer/txt", "answer.txt")
    night.commit("the answer")
    done = night.start("--task", "1.4.1")
    assert done.code == 0, done.err
    assert not (tmp_path / "called").exists()
    assert fields(night.spec, "1.4.1")["Verified"].startswith("true (")


@pytest.mark.slow
def test_one_that_is_called_complete_and_is_not_is_done(tmp_path: Path) -> None:
    spec = TEXT.replace("🔵 Planned", "✅ Complete", 1)
    night = Tasks(tmp_path, spec, agent='cp "$PROMPT" $TEST_ROOM/../prompt; ' + BOTH)
    done = night.start("--task", "1.4.1")
    assert done.code == 0, done.err
    assert "It is marked as done, but its check says otherwise" in (tmp_path / "prompt").read_text("utf-8")
    assert fields(night.spec, "1.4.1")["Verified"].startswith("true (")


@pytest.mark.slow
def test_the_loop_stops_at_the_first_failure_if_asked_to(tmp_path: Path) -> None:
    night = Tasks(tmp_path, agent="echo ITERATION_COMPLETE")
    done = night.start("--attempts", "1", "--stop-on-fail")
    assert done.code == 1
    assert "- Ended: stopped: `1.4.1. Write the answer` failed (--stop-on-fail)" in done.out
    assert fields(night.spec, "1.4.2")["Status"] == "🔵 Planned"


MANUAL = "### 1.4.1. Draw it\n\n**Status:** 🔵 Planned\n**Verification:**\n- type: manual\n- criteria: It is pretty\n"


@pytest.mark.slow
def test_what_a_person_has_to_judge_is_pending_where_nobody_is(tmp_path: Path) -> None:
    night = Tasks(tmp_path, MANUAL, agent="echo art > art.txt; echo ITERATION_COMPLETE")
    done = night.start()
    assert done.code == 0, done.err
    assert "1.4.1. Draw it (pending" in done.out.partition("## Waits for your judgement")[2]
    assert "apart from 1 item that a person has to judge" in done.out
    assert "is done, on a terminal: raymond task-loop start --task 1.4.1" in done.out
    assert (fields(night.spec, "1.4.1")["Status"], fields(night.spec, "1.4.1")["Verified"][:5]) == (
        "✅ Complete",
        "false",
    )
    again = night.start("--id", "m", "--pause", "0s")
    assert "it waits for a person's judgement: start the loop on a terminal" in again.out


@pytest.mark.slow
def test_tasks_that_no_command_verifies_are_passed_over_if_asked_to(tmp_path: Path) -> None:
    night = Tasks(tmp_path, MANUAL)
    done = night.start("--skip-unverifiable")
    assert done.code == 0
    assert "it has no command that could verify it (--skip-unverifiable)" in done.out


@pytest.mark.slow
def test_every_task_writes_a_log_if_asked_to(tmp_path: Path) -> None:
    night = Tasks(tmp_path)
    night.start("--session-per-task")
    assert len(night.logs) == 3


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


# Bad input


def test_two_tasks_of_one_id_are_refused_with_both_places(tmp_path: Path) -> None:
    night = Tasks(tmp_path, TEXT + "\n### 1.4.1. Again\n")
    done = night.start()
    assert done.code == 2
    assert f"two tasks have the id 1.4.1: {SPEC}:5 and {SPEC}:" in done.err
    assert night.spec == TEXT + "\n### 1.4.1. Again\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "flags", "error"),
    [
        ("# nothing\n", (), "there is no task in docs/implementation"),
        (TEXT, ("--area", "7"), "--area 7: there is no such area"),
        (TEXT, ("--task", "1.4.9"), "--task 1.4.9: there is no such task"),
    ],
)
def test_bad_input_names_the_way_out(tmp_path: Path, spec: str, flags: tuple[str, ...], error: str) -> None:
    done = Tasks(tmp_path, spec).start(*flags)
    assert done.code == 2
    assert error in done.err
    assert "hint: " in done.err


@pytest.mark.slow
def test_a_check_that_cannot_be_read_is_no_missing_check(tmp_path: Path) -> None:
    night = Tasks(tmp_path, TEXT.replace("expected: 0", "expected: fine"))
    done = night.start("--dry-run")
    assert "-  1.4.1. Write the answer: " in done.out
    assert "expected" in done.out


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
