"""A loop in a worktree of its own, and a person at work in another: git has one set of references and settings."""

from pathlib import Path

import pytest

from looping import HONEST, Night
from running import until

pytestmark = pytest.mark.slow
WAITS = "touch $TEST_ROOM/../began; while [ ! -e $TEST_ROOM/../go ]; do sleep 0.02; done"


def meanwhile(night: Night, agent: str, *does: tuple[str, ...]) -> str:
    """What a loop in a worktree printed, while a person did this in the checkout."""
    night.agent(f"{WAITS}; {agent}")
    with night.room.start("continuous-session", "start", "--id", "n", "--pause", "0s", "--worktree") as live:
        until((night.path.parent / "began").exists, "a turn")
        for one in does:
            night.git(*one)
        (night.path.parent / "go").touch()
        live.process.wait(60)
    return live.out


def test_settings_of_a_person_in_another_worktree_stay(tmp_path: Path) -> None:
    night = Night(tmp_path)
    added = ("remote", "add", "colleague", "https://example.com/x.git")
    out = meanwhile(night, HONEST, added, ("config", "alias.st", "status"))
    assert "- Success rate: 100% (1/1)" in out
    assert "Noticed" not in out
    assert night.git("config", "alias.st") == "status"
    assert night.git("remote") == "colleague"


def test_a_setting_that_runs_something_is_put_back_and_kept_and_the_others_stay(tmp_path: Path) -> None:
    night = Night(tmp_path)
    added = ("remote", "add", "colleague", "https://example.com/x.git")
    out = meanwhile(night, f"git config alias.x '!evil'; {HONEST}", added)
    assert "added the git setting alias.x" in out
    assert night.git("config", "--get-regexp", "^(alias|remote)[.].*").splitlines() == [
        "remote.colleague.url https://example.com/x.git",
        "remote.colleague.fetch +refs/heads/*:refs/remotes/colleague/*",
    ]
    [kept] = [line.partition("it is kept as ")[2] for line in out.splitlines() if "it is kept as " in line]
    assert "!evil" in Path(kept).read_text("utf-8")


def test_references_that_a_person_may_have_moved_stay_and_are_named(tmp_path: Path) -> None:
    night = Night(tmp_path)
    night.git("branch", "feature")
    before = night.git("rev-parse", "feature")
    made = night.git("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "a day of work")
    out = meanwhile(night, HONEST, ("update-ref", "refs/heads/feature", made))
    assert f"feature, which was at {before[:12]}, was moved by the agent or in another worktree, and stays so" in out
    assert "TAMPERED" not in out
    assert night.git("rev-parse", "feature") == made
