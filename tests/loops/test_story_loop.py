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
def test_stories_with_tasks_that_a_person_judges_can_be_passed_over(tmp_path: Path) -> None:
    spec = TASKS.replace("**Verification:** `sh check.sh`", "**Verification:** manual")
    done = Stories(tmp_path, spec=spec).start("--skip-manual", "--dry-run")
    assert "-  US-2: The reason: a person has to judge it (--skip-manual)" in done.out
    assert "1. US-1: The answer" in done.out, "its check is a command"
