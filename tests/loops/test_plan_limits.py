"""Loops over tasks and stories come to an end: repairs of repairs, retries, limits, and what is too long."""

import re
from pathlib import Path

import pytest

from planned import SPEC, Planned

FAILS = "echo try >> tries.txt; echo ITERATION_COMPLETE"
FIX = ("--attempts", "1", "--on-fail", "create-fix-task", "--max-failures", "2")
AGENT = """
echo x >> tries.txt
if grep -q '^# 1.4.1' "$PROMPT" && [ $(wc -l < tries.txt) -lt 2 ]; then :; else echo 42 > answer.txt; fi
echo ITERATION_COMPLETE
"""


@pytest.mark.slow
def test_repairs_of_a_task_count_as_failures_of_that_task(tmp_path: Path) -> None:
    night = Planned(tmp_path, FAILS)
    done = night.tasks(*FIX, "--task", "1.4.1", "--max-iterations", "6")
    assert done.code == 1
    assert done.err.count("Selected item") == 2, "the task, and its first repair"
    assert "1.4.1b" not in night.spec
    assert night.fields("1.4.1a")["Status"].startswith("⏸️ Blocked (failed 2 times")
    assert night.fields("1.4.1")["Status"].startswith("⏸️ Blocked (1.4.1a, which repairs it, failed")
    assert night.git("status", "--porcelain") == ""
    assert "...refs/raymond/n/1.1\n" in done.out, "its changes are not in the tree any more"
    assert "git diff\n" not in done.out
    for title in ("1.4.1. Write the answer", "1.4.1a. Fix: Write the answer Verification"):
        where = "write 🔵 Planned as its Status in docs/implementation/1-core/1.4-answers.md"
        where += " when you have taken the branch over"
        assert f"- unblock `{title}` when it can be done: {where}\n" in done.out
    assert "nothing to do" in night.tasks("--id", "m", "--task", "1.4.1").out
    night.git("merge", "-q", "raymond/n")
    night.write({SPEC: re.sub("⏸️ Blocked.*", "🔵 Planned", night.spec)})
    assert "Selected item" in night.tasks("--id", "o", "--task", "1.4.1").err


@pytest.mark.slow
def test_what_was_put_back_of_the_plan_is_named_with_its_reference(tmp_path: Path) -> None:
    night = Planned(tmp_path, f"echo 42 > answer.txt; echo '# Mine' > {SPEC}; echo ITERATION_COMPLETE")
    done = night.tasks("--task", "1.4.1")
    told = "see what an agent changed in the plan, which does not count: git show refs/raymond/n/1.documents -- docs"
    assert f"- {told}\n" in done.out
    assert "+# Mine" in night.git("show", "refs/raymond/n/1.documents")


@pytest.mark.slow
def test_repairs_of_the_tasks_of_a_story_end_too(tmp_path: Path) -> None:
    night = Planned(tmp_path, FAILS)
    done = night.stories(*FIX, "--task-loop", "--story", "US-1", "--max-stories", "1")
    assert done.err.count("Selected item") == 2
    assert "its tasks are not verified: 1.4.1, 1.4.1a" in done.out


@pytest.mark.slow
def test_a_story_is_tried_again_where_a_task_would_be_repaired_by_another(tmp_path: Path) -> None:
    night = Planned(tmp_path, FAILS)
    done = night.stories(*FIX, "--story", "US-1")
    assert done.err.count("Selected item") == 2
    told = night.text("docs/failures.md")
    assert "Put it at the end of the queue" in told
    assert "Created" not in told


@pytest.mark.slow
def test_an_item_that_is_tried_again_comes_before_the_end_at_a_limit(tmp_path: Path) -> None:
    night = Planned(tmp_path, AGENT)
    done = night.tasks("--attempts", "1", "--on-fail", "retry", "--max-iterations", "1")
    assert done.code == 0, done.out
    assert night.fields("1.4.1")["Verified"].startswith("true (")
    assert "Verified" not in night.fields("1.4.2"), "the limit counts for what has not begun"
    assert "- 1.4.2. Explain it" in done.out
