"""A task that changes the very file that its check runs."""

from pathlib import Path

import pytest

from looping import Night

SPEC = """# 1.1 Greetings

## 1.1.1. Say the version

**Status:** 🔵 Planned
**Verification:**
- command: sh greet.sh --version
- expected: output contains "2"
"""
CHANGES = "echo 'echo 2' > greet.sh; echo ITERATION_COMPLETE"


@pytest.mark.slow
@pytest.mark.parametrize(("more", "code", "verified"), [("", 1, "false"), ("- may: greet.sh\n", 0, "true")])
def test_a_file_that_the_check_runs_is_changed_without_a_review_only_if_the_task_may(
    tmp_path: Path, more: str, code: int, verified: str
) -> None:
    spec = "docs/implementation/1-core/1.1-greetings.md"
    night = Night(tmp_path, agent=CHANGES, **{spec.replace("/", "__"): SPEC + more, "greet.sh": "echo 1\n"})
    done = night.loop(loop="task-loop")
    assert f"**Verified:** {verified}" in night.text(spec), done.err
    assert ("greet.sh" in done.err and "review" in done.err) == (verified == "false")
    assert done.code == code
