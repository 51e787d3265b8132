"""What an agent has begun with git and not ended: it is ended for it and named, and nothing of the night is lost."""

import subprocess
from pathlib import Path

import pytest

from looping import HONEST, Night
from raymond.loops import unfinished
from raymond.loops.repository import Repository

pytestmark = pytest.mark.slow
TWO = "1. [VERIFY: sh check.sh] Write the answer\n2. [VERIFY: test -e two] Second\n"
CLEAN = "On branch raymond/n\nnothing to commit, working tree clean"


def apart(path: Path, begun: str = "true") -> Night:
    """A night with a branch `other` that nobody can merge with, whose first agent begins something with git."""
    begins = f"{begun} >/dev/null 2>&1; echo 42 > answer.txt"
    night = Night(path, TWO, f'if grep -q "^# Second" $PROMPT; then touch two; else {begins}; fi; echo done')
    for name, text in (("other", "theirs"), ("main", "ours")):
        night.git("switch", "-q", *(("-c", name) if name == "other" else (name,)))
        for more in ("", " again"):
            night.write({"README.md": f"{text}{more}\n"})
            night.commit(f"{text}{more}")
    return night


@pytest.mark.parametrize(("begun", "named"), [("git rebase other", "a rebase"), ("git merge other", "a merge")])
def test_what_an_agent_has_begun_with_git_is_ended_and_named_and_the_night_goes_on(
    tmp_path: Path, begun: str, named: str
) -> None:
    night = apart(tmp_path, begun)
    ran = night.loop("--attempts", "1")
    assert f"the agent left {named} unfinished, which was ended; its files stay part of the work" in ran.out
    assert "the agent left a conflict in README.md, of which the file stays as it is" in ran.out
    assert "left the marks of a conflict in README.md" in ran.out
    assert [one["verdict"] for one in night.state["failedItems"]] == ["review"]
    assert night.git("status") == CLEAN
    own = ("feat: second", "chore(loop): records")
    assert night.subjects == ["start", "ours", "ours again", *own]
    assert night.loop("--id", "m").code == 0


def test_nothing_is_unfinished_after_an_iteration_that_is_red(tmp_path: Path) -> None:
    night = apart(tmp_path, "git merge other")
    night.write({"PROMPT.md": "Make it 42\n"})
    ran = night.loop("PROMPT.md", "--gate", "false", "--commit", "green", "--max-iterations", "1", loop="ralph")
    assert "the agent left a merge unfinished, which was ended" in ran.out
    assert "left the marks of a conflict in README.md" in ran.out
    assert night.git("status", "--porcelain") == "?? PROMPT.md"


def test_records_that_are_not_committed_during_a_merge_say_so(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=HONEST)
    hook = night.path / ".git/hooks/post-commit"
    hook.write_text("#!/bin/sh\ngit rev-parse HEAD > .git/MERGE_HEAD\n", "utf-8")
    hook.chmod(0o755)
    ran = night.loop()
    why = "a merge is in progress here (end it, then commit what is in docs)"
    assert f"the records of the loop were not committed: {why}\n" in ran.err


@pytest.mark.parametrize(
    ("begun", "named"),
    [
        ("git rebase other", "a rebase"),
        ("git rebase --apply other", "a rebase or `git am`"),
        ("git format-patch -1 other --stdout | git am", "a rebase or `git am`"),
        ("git merge other", "a merge"),
        ("git cherry-pick other~1 other", "a cherry-pick"),
        ("git cherry-pick other~1 other; git commit -qam own", "a row of cherry-picks or reverts"),
        ("git revert HEAD~1", "a revert"),
        ("git bisect start HEAD HEAD~2", "a bisection"),
        ("mkdir ../theirs && touch ../theirs/kept && ln -s ../../theirs .git/rebase-merge", "a rebase"),
        ("mkdir .git/rebase-merge", "a rebase"),
    ],
)
def test_git_forgets_whatever_was_begun_and_head_and_the_files_stay(tmp_path: Path, begun: str, named: str) -> None:
    night = apart(tmp_path)
    subprocess.run(begun, shell=True, cwd=night.path, env=night.room.environment, capture_output=True, check=False)
    repository = Repository(str(night.path), str(tmp_path / "index"))
    before = night.git("rev-parse", "HEAD"), night.git("status", "--porcelain")
    found = unfinished.there(repository)
    assert unfinished.words(found) == named
    assert unfinished.end(repository, found)
    assert (night.git("rev-parse", "HEAD"), night.git("status", "--porcelain")) == before
    assert "currently" not in night.git("status")
    assert unfinished.there(repository) == []
    assert (tmp_path / "theirs/kept").exists() == ("theirs" in begun)


def test_what_git_had_put_away_before_a_rebase_is_in_the_list_of_stashes(tmp_path: Path) -> None:
    night = apart(tmp_path)
    night.write({"check.sh": "mine\n"})
    subprocess.run(["git", "rebase", "--autostash", "other"], cwd=night.path, capture_output=True, check=False)
    repository = Repository(str(night.path), str(tmp_path / "index"))
    assert unfinished.end(repository, unfinished.there(repository))
    assert night.git("show", "stash@{0}:check.sh") == "mine"
