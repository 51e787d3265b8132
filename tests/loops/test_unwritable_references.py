"""References that cannot be written: nothing is removed before it is kept, and the way out is named."""

import shutil
from pathlib import Path

import pytest

from looping import HONEST, Night

pytestmark = pytest.mark.slow
STUCK = "wait until the other git has ended; if there is none, remove the file\n"


def lock(night: Night, reference: str) -> Path:
    """What a git that was killed leaves behind."""
    path = night.path / f".git/{reference}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


@pytest.mark.parametrize(("way", "reference"), [("discard", "refs/raymond/n/dirty"), ("commit", "refs/heads/work")])
def test_changes_stay_in_the_tree_when_they_cannot_be_kept(tmp_path: Path, way: str, reference: str) -> None:
    night = Night(tmp_path)
    night.git("switch", "-qc", "work")
    night.write({"mine.txt": "an hour of work\n", "README.md": "more\n"})
    stale = lock(night, reference)
    ran = night.loop("--on-dirty", way)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.endswith(
        f"error: {reference} cannot be written, because there is a lock: .git/{reference}.lock\nhint: {STUCK}"
    )
    assert (night.text("mine.txt"), night.text("README.md")) == ("an hour of work\n", "more\n")
    assert night.git("status", "--porcelain").splitlines() == ["M README.md", "?? mine.txt"]
    stale.unlink()
    assert night.loop("--on-dirty", way).code == 0


def test_the_work_of_an_item_stays_in_the_tree_when_it_cannot_be_kept(tmp_path: Path) -> None:
    night = Night(tmp_path, agent="echo precious > precious.txt; echo ITERATION_COMPLETE")
    stale = lock(night, "refs/raymond/n/1.1")
    ran = night.loop("--attempts", "1")
    assert ran.code == 3
    assert "refs/raymond/n/1.1 cannot be written, because there is a lock" in ran.err
    assert night.text("precious.txt") == "precious\n"
    stale.unlink()
    assert night.loop("--yes", verb="resume").code == 1
    assert night.git("show", "refs/raymond/n/1.1:precious.txt") == "precious"
    assert night.git("status", "--porcelain") == ""


def test_a_lock_of_the_branch_is_the_reason_why_nothing_is_committed(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=f"touch .git/refs/heads/raymond/n.lock; {HONEST}")
    with night.git_at_work():
        ran = night.loop()
    assert ran.code == 3
    assert "there is a lock: .git/refs/heads/raymond/n.lock" in ran.err
    assert "somebody has" not in ran.err + ran.out
    assert night.text("answer.txt") == "42\n"


@pytest.mark.parametrize(
    ("there", "asked", "clash"),
    [("raymond", "", "raymond"), ("feature", "feature/x", "feature"), ("feature/x", "feature", "feature/x")],
)
def test_a_branch_in_the_way_is_named_and_the_checkout_stays(
    tmp_path: Path, there: str, asked: str, clash: str
) -> None:
    night = Night(tmp_path)
    night.git("branch", there)
    night.write({"mine.txt": "an hour of work\n"})
    ran = night.loop("--on-dirty", "discard", *(["--branch", asked] if asked else []))
    assert (ran.code, ran.out) == (2, "")
    wanted = asked or "raymond/n"
    assert ran.err == f"error: a branch `{clash}` is in the way of {wanted}\nhint: --branch NAME\n"
    assert night.git("symbolic-ref", "HEAD") == "refs/heads/main"
    assert night.text("mine.txt") == "an hour of work\n", "nothing is put away for a loop that does not begin"


def test_a_worktree_cannot_have_a_branch_that_another_is_in_the_way_of(tmp_path: Path) -> None:
    night = Night(tmp_path)
    night.git("branch", "raymond")
    ran = night.loop("--worktree")
    assert (ran.code, "a branch `raymond` is in the way of raymond/n" in ran.err) == (2, True)


def test_a_branch_of_another_worktree_is_not_taken(tmp_path: Path) -> None:
    night = Night(tmp_path)
    night.git("worktree", "add", "-q", "-b", "feature", str(tmp_path / "tree"))
    ran = night.loop("--branch", "feature")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "error: another worktree has feature checked out\nhint: --branch NAME, or start the loop there\n"
    )
    assert night.git("symbolic-ref", "HEAD") == "refs/heads/main"


def test_a_git_that_cannot_say_where_hooks_are_does_not_mean_that_there_are_none(tmp_path: Path) -> None:
    night = Night(tmp_path)
    hook = night.path / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\necho rejected; exit 1\n", "utf-8")
    hook.chmod(0o755)
    fake = tmp_path / "bin/git"
    fake.parent.mkdir()
    counted = "c=$(cat $HOME/c 2>/dev/null || echo 0); c=$((c+1)); echo $c > $HOME/c; [ $c = 1 ] || exit 128"
    fails = f'case "$*" in *--git-path*hooks*) if grep -qa PREPARE /proc/$PPID/cmdline; then {counted}; fi;; esac'
    fake.write_text(f'#!/bin/bash\n{fails}\nexec {shutil.which("git")} "$@"\n', "utf-8")
    fake.chmod(0o755)
    night.room.environment["PATH"] = f"{fake.parent}:{night.room.environment['PATH']}"
    night.loop("--attempts", "1")
    assert "feat: write the answer" not in night.subjects


def test_a_branch_that_was_renamed_while_the_loop_paused_is_said_to_be_gone(tmp_path: Path) -> None:
    night = Night(tmp_path, agent="echo ITERATION_COMPLETE")
    assert night.loop("--attempts", "1", "--budget", "0.005").code == 4
    night.git("branch", "-m", "raymond/n", "mine")
    ran = night.loop("--yes", verb="resume")
    assert ran.code == 2
    assert ran.err.endswith(
        "error: the branch raymond/n, on which the loop works, is gone\n"
        "hint: git switch -c raymond/n where its commits are, then try again\n"
    )
    night.git("switch", "-qc", "raymond/n")
    night.agent(HONEST)
    assert night.loop("--yes", "--budget", "5", verb="resume").code == 0
