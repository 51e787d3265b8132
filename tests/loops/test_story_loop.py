"""`raymond story-loop`: stories of a PRD, worked through until they pass."""

import json
from pathlib import Path
from typing import Any

import pytest

from looping import Night
from running import Ran

SPEC = "docs/implementation/1-core/1.4-answers.md"
TASKS = """### 1.4.1. Write the answer

**Status:** 🔵 Planned
**Verification:** `sh check.sh`

### 1.4.2. Explain it

**Status:** 🔵 Planned
**Verification:**
- command: cat why.txt
- expected: output contains "because"
"""
PRD = """# Product

## User Stories

### US-1: The answer

As a reader, I want the answer, so that I know it.

**Acceptance Criteria:**
- [ ] It is 42

**Verification:** `sh check.sh`

**Implemented by:** 1.4.1

### US-2: The reason

**Acceptance Criteria:**
- [ ] It says why

**Verification:** tasks

**Implemented by:** 1.4
"""
BOTH = "echo 42 > answer.txt; echo because > why.txt; echo ITERATION_COMPLETE"


class Stories(Night):
    """A night over a PRD."""

    def __init__(self, path: Path, prd: str = PRD, agent: str = BOTH, *, spec: str = TASKS, init: bool = True) -> None:
        super().__init__(path, agent=agent, **{SPEC.replace("/", "__"): spec, "docs__prd.md": prd})
        if init:
            done = self.room.raymond("prd", "status-init", "--yes")
            assert done.returncode == 0, done.stderr
            self.commit("status")

    def start(self, *args: str, verb: str = "start") -> Ran:
        return self.loop(*args, verb=verb, loop="story-loop")

    @property
    def stories(self) -> dict[str, Any]:
        """By id, as the status file has them."""
        return {one["id"]: one for one in self.whole["stories"]}

    @property
    def whole(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text("docs/prd-status.json"))
        return found

    @property
    def told(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text("docs/.story-loop-state.json"))
        return found


@pytest.mark.slow
def test_stories_pass_when_their_checks_do(tmp_path: Path) -> None:
    night = Stories(tmp_path)
    done = night.start()
    assert done.code == 0, done.err
    first, second = night.stories["US-1"], night.stories["US-2"]
    assert first["passes"]
    assert second["passes"]
    assert [one["result"] for one in first["history"]] == ["passed"]
    assert first["history"][0]["notes"] == "sh check.sh"
    assert night.whole["statistics"] == {"total": 2, "passed": 2, "failed": 0, "pending": 0}
    assert night.text(SPEC).count("**Verified:** true (") == 2, "the second story is verified by its tasks"
    assert night.subjects[-3:] == ["feat: the answer (US-1)", "feat: the reason (US-2)", "chore(loop): records"]
    assert [one["id"] for one in night.told["completedStories"]] == ["US-1", "US-2"]
    assert night.git("status", "--porcelain") == ""
    assert "nothing to do" in night.start("--id", "m").out


@pytest.mark.slow
def test_a_story_that_fails_says_so_in_its_history(tmp_path: Path) -> None:
    night = Stories(tmp_path, agent="echo ITERATION_COMPLETE")
    done = night.start("--attempts", "1", "--story", "US-1")
    assert done.code == 1
    history = night.stories["US-1"]["history"]
    assert [one["result"] for one in history] == ["failed"]
    assert history[0]["notes"].startswith("failed: `sh check.sh` ended with exit code")
    assert night.whole["statistics"]["failed"] == 1
    assert [one["id"] for one in night.told["failedStories"]] == ["US-1"]


@pytest.mark.slow
def test_the_tasks_of_a_story_come_first_and_count_as_one(tmp_path: Path) -> None:
    night = Stories(tmp_path)
    done = night.start("--task-loop", "--max-stories", "1", "--story", "US-2")
    assert done.code == 0, done.err
    assert night.subjects[-4:] == [
        "feat: write the answer (1.4.1)",
        "docs: explain it (1.4.2)",
        "feat: the reason (US-2)",
        "chore(loop): records",
    ]
    assert done.err.count("ralph-loop: Implementation complete") == 2, "nobody is paid for the story itself"
    assert "- Stories used: 1 of 1" in done.out
    assert night.stories["US-2"]["passes"]


@pytest.mark.slow
def test_a_story_whose_task_fails_is_named_as_not_done(tmp_path: Path) -> None:
    night = Stories(tmp_path, agent="echo ITERATION_COMPLETE")
    done = night.start("--task-loop", "--story", "US-2", "--attempts", "1")
    assert done.code == 1
    assert "- US-2: The reason: its tasks are not verified: 1.4.1, 1.4.2" in done.out
    assert not night.stories["US-2"]["passes"]


@pytest.mark.slow
def test_a_task_with_the_check_of_its_story_is_verified_by_it(tmp_path: Path) -> None:
    night = Stories(tmp_path)
    night.start("--story", "US-1")
    first, _, second = night.text(SPEC).partition("### 1.4.2")
    assert "**Verified:** true (" in first
    assert "**Status:** 🔵 Planned" in second, "this one was not checked"


@pytest.mark.slow
def test_the_limit_counts_stories(tmp_path: Path) -> None:
    night = Stories(tmp_path)
    done = night.start("--max-stories", "1")
    assert done.code == 0, done.err
    assert night.stories["US-1"]["passes"]
    assert not night.stories["US-2"]["passes"]
    assert "- Ended: limit: the maximum of 1 story was reached" in done.out
    assert "US-2: The reason" in done.out.partition("## Remaining")[2]


def test_a_story_without_tasks_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    night = Stories(tmp_path, PRD.replace("**Implemented by:** 1.4.1\n", ""), spec=TASKS.replace("answer", "thing"))
    done = night.start()
    assert done.code == 2
    assert "docs/prd.md:5: US-1: it has no tasks" in done.err
    assert "--create-tasks" in done.err
    assert night.start("--story", "US-2", "--dry-run").code == 0, "the others can be worked on"


PLAN = r"""
if grep -q 'plan its tasks' "$PROMPT"; then
  printf '### 7.7.1. Write it\n\n**Status:** ✅ Complete\n**Verified:** true\n**Verification:**\n- command: sh check.sh\n\nDo it.\n\nITERATION_COMPLETE\n'
else
  echo 42 > answer.txt; echo ITERATION_COMPLETE
fi
"""
ALONE = (
    "## User Stories\n\n### US-1: The answer\n\n**Acceptance Criteria:**\n- [ ] It is 42\n\n**Verification:** tasks\n"
)


@pytest.mark.slow
def test_tasks_that_an_agent_plans_are_proposed_and_wait(tmp_path: Path) -> None:
    night = Stories(tmp_path, ALONE, agent=PLAN, spec="# nothing\n")
    done = night.start("--create-tasks")
    assert done.code == 0, done.err
    spec = night.text("docs/implementation/2-stories/2.1-us-1.md")
    assert "## 2.1.1. Write it" in spec
    assert "**Status:** 🔵 Planned\n**Proposed:** yes\n**Implements:** US-1\n" in spec
    assert not {"Complete", "Verified"} & set(spec.replace("*", " ").replace(":", " ").split()), "whatever it says"
    assert "its tasks are proposed by an agent: look at docs/implementation/2-stories/2.1-us-1.md" in done.out
    assert not night.stories["US-1"]["passes"]
    assert night.git("status", "--porcelain") == ""


@pytest.mark.slow
def test_planned_tasks_are_worked_on_if_they_are_accepted(tmp_path: Path) -> None:
    night = Stories(tmp_path, ALONE, agent=PLAN, spec="# nothing\n")
    done = night.start("--create-tasks", "--accept-proposed", "--task-loop")
    assert done.code == 0, done.err
    assert "(planned" in done.out
    assert "2.1.1. Write it (own check: `sh check.sh`" in done.out
    assert night.stories["US-1"]["passes"]


MANUAL = PRD.replace("**Verification:** `sh check.sh`", "**Verification:** manual")


@pytest.mark.slow
def test_a_story_that_a_person_judges_is_pending_where_nobody_is(tmp_path: Path) -> None:
    night = Stories(tmp_path, MANUAL)
    done = night.start("--story", "US-1")
    assert done.code == 0, done.err
    assert night.stories["US-1"]["history"][-1]["result"] == "pending"
    assert not night.stories["US-1"]["passes"]
    assert "say whether `US-1: The answer` is done, on a terminal: raymond story-loop start --story US-1" in done.out
    again = night.start("--id", "m", "--pause", "0s", "--story", "US-1")
    assert "it waits for a person's judgement" in again.out, "nobody is paid again"


@pytest.mark.slow
def test_stories_that_a_person_judges_can_be_passed_over(tmp_path: Path) -> None:
    done = Stories(tmp_path, MANUAL).start("--skip-manual", "--dry-run")
    assert "-  US-1: The answer: a person has to judge it (--skip-manual)" in done.out
    assert "1. US-2: The reason" in done.out


@pytest.mark.slow
def test_an_agent_cannot_say_that_a_story_passes(tmp_path: Path) -> None:
    cheat = (
        'sed -i \'s/"passes": false/"passes": true/\' docs/prd-status.json;'
        " sed -i 's/sh check.sh/true/' docs/prd.md docs/implementation/*/*.md; echo ITERATION_COMPLETE"
    )
    night = Stories(tmp_path, agent=cheat)
    done = night.start("--attempts", "1")
    assert done.code == 1
    assert not any(one["passes"] for one in night.stories.values())
    assert night.text("docs/prd.md") == PRD
    assert "changed docs/prd-status.json, which says what is to be done; it was put back" in done.out


@pytest.mark.slow
def test_a_story_waits_for_those_it_depends_on(tmp_path: Path) -> None:
    prd = PRD.replace("**Verification:** tasks\n", "**Verification:** tasks\n\n**Depends on:** US-1\n")
    night = Stories(tmp_path, prd, agent="echo because > why.txt; echo ITERATION_COMPLETE")
    done = night.start("--attempts", "1")
    assert "US-2: The reason: US-1 has to pass first" in done.out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prd", "flags", "error"),
    [
        ("# nothing\n", (), "docs/prd.md has no stories"),
        (PRD, ("--story", "US-9"), "--story US-9: there is no such story"),
        (PRD + "\n### US-1: Again\n", (), "two stories have the id US-1: docs/prd.md:5 and docs/prd.md:"),
    ],
)
def test_bad_input_names_the_way_out(tmp_path: Path, prd: str, flags: tuple[str, ...], error: str) -> None:
    done = Stories(tmp_path, prd, init=False).start(*flags)
    assert done.code == 2
    assert error in done.err


@pytest.mark.slow
def test_without_a_status_file_the_command_that_makes_it_is_named(tmp_path: Path) -> None:
    done = Stories(tmp_path, init=False).start()
    assert done.code == 2
    assert "there is no docs/prd-status.json" in done.err
    assert "raymond prd status-init" in done.err


@pytest.mark.slow
def test_the_metrics_of_a_night(tmp_path: Path) -> None:
    night = Stories(tmp_path)
    night.start("--max-stories", "1")
    shown = night.start("--metrics", verb="status").out
    assert "1/2" in shown
    assert "50%" in shown
    found = json.loads(night.start("--metrics", "--json", verb="status").out)
    assert found["stories"]["passed"] == 1


BLOCKED = TASKS.replace("🔵 Planned", "⏸️ Blocked (legal has not approved it)", 1)


@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), ("--task-loop",)])
def test_a_task_that_is_blocked_is_neither_worked_on_nor_marked(tmp_path: Path, flags: tuple[str, ...]) -> None:
    night = Stories(tmp_path, agent="touch $TEST_ROOM/../paid", spec=BLOCKED)
    done = night.start("--story", "US-1", *flags)
    assert "legal has not approved it" in done.out
    assert night.text(SPEC) == BLOCKED
    assert not (tmp_path / "paid").exists()


@pytest.mark.slow
def test_stories_with_tasks_that_a_person_judges_can_be_passed_over(tmp_path: Path) -> None:
    spec = TASKS.replace("**Verification:** `sh check.sh`", "**Verification:** manual")
    done = Stories(tmp_path, spec=spec).start("--skip-manual", "--dry-run")
    assert "-  US-2: The reason: a person has to judge it (--skip-manual)" in done.out
    assert "1. US-1: The answer" in done.out, "its check is a command"
