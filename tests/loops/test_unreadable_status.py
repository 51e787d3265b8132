"""`story-loop status --metrics` of a project whose stories or their status cannot be read."""

import subprocess
from pathlib import Path

import pytest

from running import Room

PRD = "## User Stories\n\n### US-1: Search\n\n**Verification:** `sh search.sh`\n"


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_numbers_that_nobody_knows_are_not_zero(tmp_path: Path, more: list[str]) -> None:
    room = Room(tmp_path)
    (room.path / "docs").mkdir()
    subprocess.run(["git", "init", "-q"], cwd=room.path, check=True)
    done = room.raymond("story-loop", "status", "--metrics", *more)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: docs/prd.md does not exist\nhint: write your stories there, or: raymond prd import FILE\n"
    )
    (room.path / "docs/prd.md").write_text(PRD, "utf-8")
    assert room.raymond("story-loop", "status", "--metrics", *more).returncode == 0, "nothing has passed yet"
    (room.path / "docs/prd-status.json").write_text("{", "utf-8")
    done = room.raymond("story-loop", "status", "--metrics", *more)
    assert (done.returncode, done.stdout) == (2, "")
    error, hint = done.stderr.splitlines()
    assert error.startswith("error: docs/prd-status.json cannot be read: ")
    assert hint == "hint: raymond prd status-init builds it again, and keeps this one aside"
