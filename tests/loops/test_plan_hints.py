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
