"""Locks that a git which is gone has left behind: what a loop says about them, and that nothing is lost."""

from pathlib import Path

import pytest

from looping import Night

pytestmark = pytest.mark.slow
INDEX, BRANCH = ".git/index.lock", ".git/refs/heads/raymond/n.lock"


def test_a_stale_index_lock_is_named_before_anything_starts_with_a_way_out(tmp_path: Path) -> None:
    night = Night(tmp_path)
    (night.path / INDEX).touch()
    ran = night.loop()
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "error: there is a file .git/index.lock: somebody is changing the index\n"
        "hint: wait until the other git has ended; if there is none, remove the file\n"
    )
    assert not night.room.folder("n").exists()
    assert night.git("rev-parse", "--abbrev-ref", "HEAD") == "main"
    (night.path / INDEX).unlink()
    assert night.loop().code == 0


def test_a_locked_branch_that_cannot_be_set_back_is_named_and_nothing_is_lost(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=f"echo x > x.txt; git add -A; git commit -qm own; touch {BRANCH}; echo done")
    with night.git_at_work():
        ran = night.loop("--attempts", "1")
    assert ran.code == 3
    assert f"refs/heads/raymond/n cannot be written, because there is a lock: {BRANCH}" in ran.err
    assert (night.subjects, night.text("x.txt")) == (["start", "own"], "x\n"), "everything is as the agent left it"
    assert night.git("show", "refs/raymond/n/1.1:x.txt") == "x"
    assert "raymond continuous-session resume" in ran.out
    (night.path / BRANCH).unlink()
    ran = night.loop("--yes", verb="resume")
    assert ran.code == 1, ran.err
    assert night.subjects == ["start", "chore(loop): records"]
    assert night.git("show", "refs/raymond/n/1.1:x.txt") == "x"
    assert night.git("status", "--porcelain") == ""
