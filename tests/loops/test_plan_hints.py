"""What a person is told about a plan before anybody is paid: the cause that is the cause, and the way out."""

from pathlib import Path

import pytest

from planned import Planned
from running import Room

PRD = """## User Stories

### US-1: The answer

**Verification:** `sh check.sh`
**Implemented by:** 1.4.1
"""
SPEC = "docs/implementation/1-core/1.4-answers.md"
BARE = "### 1.4.1. Write the answer\n\n**Status:** 🔵 Planned\n"


def planned(path: Path, prd: str = PRD, spec: str = BARE) -> Planned:
    night = Planned(path, "touch $TEST_ROOM/../paid; echo ITERATION_COMPLETE")
    night.write({"docs/prd.md": prd, SPEC: spec})
    (night.room.path / "docs/prd-status.json").unlink()
    assert night.room.raymond("prd", "status-init").returncode == 0
    night.commit("plan")
    return night


def test_a_task_without_a_check_is_known_before_its_story_is_begun(tmp_path: Path) -> None:
    night = planned(tmp_path)
    why = (
        "1.4.1 has no check, so US-1 cannot be verified with --task-loop:"
        " give it a **Verification:**, or leave out --task-loop"
    )
    for more in (("--dry-run",), ()):
        done = night.stories("--task-loop", *more)
        assert (done.code, done.out) == (
            0,
            f"nothing to do: docs/prd.md has nothing that can be worked on\n  US-1: The answer: {why}\n",
        )
    assert not (tmp_path / "paid").exists()


@pytest.mark.slow
def test_a_story_of_tasks_has_no_other_way_than_a_check(tmp_path: Path) -> None:
    night = planned(tmp_path, PRD.replace("`sh check.sh`", "tasks"))
    told = night.stories("--task-loop", "--dry-run").out
    assert "US-1: The answer: 1.4.1 has no check, so US-1 cannot be verified: give it a **Verification:**\n" in told


@pytest.mark.slow
def test_a_task_that_does_not_exist_is_named_with_those_that_do(tmp_path: Path) -> None:
    night = planned(tmp_path, PRD.replace("1.4.1", "1.4.9"))
    assert night.stories().err == (
        "error: docs/prd.md:3: US-1: there is no task 1.4.9\nhint: there is 1.4.1: correct its **Implemented by:**\n"
    )


@pytest.mark.slow
def test_a_story_that_names_something_else_is_passed_over_for_that(tmp_path: Path) -> None:
    night = planned(tmp_path, PRD.replace("1.4.1", "somebody"))
    why = "`somebody` in `Implemented by` is not read: name each task, or their group, as in `1.4.1, 1.4.2`"
    done = night.stories()
    assert f"  US-1: The answer: {why}\n" in done.out
    assert f"warning: docs/prd.md:6: US-1 cannot be verified: {why}\n" in done.err


@pytest.mark.slow
def test_a_link_that_was_not_taken_is_the_way_out(tmp_path: Path) -> None:
    prd = "## User Stories\n\n### US-1: Explain the usage\n\n**Acceptance Criteria:**\n- help prints the usage\n"
    night = planned(tmp_path, prd, BARE.replace("Write the answer", "Explain the usage with help"))
    assert night.stories().err.splitlines()[-2:] == [
        "error: docs/prd.md:3: US-1: it has no tasks",
        "hint: raymond prd status-init --yes links it to 1.4.1, or write **Implemented by:** 1.4.1 under it",
    ]


@pytest.mark.slow
def test_what_is_done_is_said_to_be_done(tmp_path: Path) -> None:
    night = planned(
        tmp_path, spec=f"{BARE}**Verification:** `true`\n".replace("🔵 Planned", "✅ Complete\n**Verified:** true")
    )
    assert night.tasks("--task", "1.4.1").out == "nothing to do: 1.4.1 is verified already\n"
    assert night.tasks("--area", "1").out == "nothing to do: every task of 1 is verified already\n"
    night.write(
        {"docs/prd-status.json": night.text("docs/prd-status.json").replace('"passes": false', '"passes": true')}
    )
    night.commit("passes")
    assert night.stories("--story", "US-1").out == "nothing to do: US-1 passes already\n"
    assert night.stories().out == "nothing to do: every story passes already\n"


@pytest.mark.slow
def test_a_blocked_task_is_said_to_be_blocked_and_how_to_change_that(tmp_path: Path) -> None:
    night = planned(tmp_path, spec=BARE.replace("🔵 Planned", "⏸️ Blocked (no password)"))
    done = night.tasks("--task", "1.4.1")
    assert done.out.endswith("can be worked on\n  1.4.1. Write the answer: blocked: no password\n")
    assert done.err.endswith(f"hint: to unblock a task, set its **Status:** to 🔵 Planned: {SPEC}\n")


# A folder below the top of the repository


@pytest.fixture
def below(tmp_path: Path) -> Room:
    """In a folder of a repository whose PRD is at the top."""
    room = planned(tmp_path).room
    (room.path / "sub").mkdir()
    (room.path / "sub/fix plan.md").write_text("- [ ] a\n", "utf-8")
    return room


def test_an_import_below_the_top_makes_no_second_prd(below: Room) -> None:
    argv = ("-C", "sub", "prd", "import", "fix plan.md", "--verify", "sh a.sh", "--as", "fix-plan", "--yes")
    done = below.raymond(*argv)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: there is no folder docs here, but there is one at the top of the repository\n"
        "hint: raymond -C .. prd import 'sub/fix plan.md' --as fix-plan --verify 'sh a.sh' --yes;"
        " or mkdir docs, if this folder is to have its own\n"
    )
    assert not (below.path / "sub/docs").exists()


@pytest.mark.slow
def test_a_status_below_the_top_is_built_at_the_top(below: Room) -> None:
    done = below.raymond("-C", "sub", "prd", "status-init", "--json")
    assert done.stderr.endswith(
        "hint: raymond -C .. prd status-init --json; or mkdir docs, if this folder is to have its own\n"
    )
    (below.path / "sub/docs").mkdir()
    done = below.raymond("-C", "sub", "prd", "status-init", "--yes")
    assert done.returncode == 2
    assert done.stderr == (
        "error: there is no docs/prd.md here, but there is one at the top of the repository\n"
        "hint: raymond -C .. prd status-init --yes\n"
    )
    done = below.raymond("-C", "sub", "prd", "import", "fix plan.md", "--yes")
    assert done.returncode == 0
    assert done.stderr.startswith(
        "warning: docs/prd.md is new here, and the repository has one at its top: raymond -C .."
    )
