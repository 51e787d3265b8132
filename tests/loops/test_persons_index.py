"""The index of the person in whose checkout a loop works: it is theirs, and it is whole when the loop is done."""

import signal
from pathlib import Path
from subprocess import CalledProcessError

import pytest

from looping import HONEST, WAIT, Night
from running import until
from typist import Typist

pytestmark = pytest.mark.slow
TWO = "1. [VERIFY: sh check.sh] Write the answer\n2. [VERIFY: test -e two] Second\n"


def staging(path: Path, agent: str) -> Night:
    """A night in a tree where a person has staged one version of a file and works on another."""
    night = Night(path, agent=agent)
    night.write({"local.cfg": "url = prod\n", "PROMPT.md": "Make it 42\n"})
    night.commit("more")
    night.write({"local.cfg": "url = my machine\n", "README.md": "staged\n", "new.txt": "staged too\n"})
    night.git("update-index", "--skip-worktree", "local.cfg")
    night.git("add", "README.md", "new.txt")
    night.write({"README.md": "an experiment\n"})
    return night


def check_staged(night: Night) -> None:
    assert night.git("show", ":README.md") == "staged"
    assert night.git("ls-files", "-v", "local.cfg") == "S local.cfg"
    assert night.git("status", "--porcelain", "--untracked-files=no").splitlines() == ["MM README.md", "A  new.txt"]
    assert (night.text("README.md"), night.text("local.cfg")) == ("an experiment\n", "url = my machine\n")


def test_what_a_person_has_staged_stays_so_after_a_commit(tmp_path: Path) -> None:
    night = staging(tmp_path, HONEST)
    ran = night.loop("PROMPT.md", "--gate", "sh check.sh", loop="ralph")
    assert ran.code == 0, ran.err
    assert night.git("show", "--name-only", "--format=", "HEAD~1").split() == ["answer.txt"]
    check_staged(night)


def test_what_an_agent_has_staged_goes_with_its_work(tmp_path: Path) -> None:
    night = staging(
        tmp_path, "echo evil > README.md; echo x > x.txt; mkdir .github; touch .github/x; git add -A; echo done"
    )
    ran = night.loop("--on-dirty", "continue", "--attempts", "1")
    assert ran.code == 1, ran.err
    assert not (night.path / "x.txt").exists()
    check_staged(night)


@pytest.mark.parametrize("answer", ["commit", "discard"])
def test_what_becomes_of_an_interrupted_session_does_not_concern_a_persons_files(tmp_path: Path, answer: str) -> None:
    night = staging(tmp_path, f"echo half > half.txt; touch ../half\n{WAIT}")
    head = night.git("rev-parse", "HEAD")
    start = ("ralph", "PROMPT.md", "--gate", "sh check.sh", "--id", "n", "--pause", "0s")
    with night.room.start(*start) as live:
        until((tmp_path / "half").exists, "the agent")
        live.signal(signal.SIGTERM)
        live.signal(signal.SIGTERM)
        assert live.process.wait(60) == 128 + signal.SIGTERM
    night.agent(HONEST)
    person = Typist(night.room, "ralph", "resume")
    person.sees(r"Resume from iteration 1\? \[Y/n\] ")
    person.type("y\n")
    person.sees(r"has changed 1\s+file")
    person.type(f"{answer}\n")
    assert person.end() == 0
    names = [one for one in night.git("diff", "--name-only", f"{head}..HEAD").split() if not one.startswith("docs/")]
    assert names == ["answer.txt", *["half.txt"] * (answer == "commit")]
    check_staged(night)


def test_an_index_with_conflicts_is_named_before_anything_starts_with_a_way_out(tmp_path: Path) -> None:
    night = Night(tmp_path)
    night.write({"README.md": "put away\n", "check.sh": "true\n"})
    night.git("stash", "-q")
    night.write({"README.md": "since then\n", "PROMPT.md": "Make it 42\n"})
    night.commit("since then")
    with pytest.raises(CalledProcessError):
        night.git("stash", "pop")
    before = night.git("ls-files", "-s")
    for ran in (night.loop(), night.loop("PROMPT.md", "--gate", "sh check.sh", loop="ralph")):
        assert (ran.code, ran.out) == (2, "")
        assert ran.err == (
            "error: the index has conflicts: README.md\n"
            "hint: resolve them and `git add` the files; `git reset` keeps the files as they are and forgets the conflicts\n"
        )
    assert night.git("ls-files", "-s") == before
    night.git("add", "README.md")
    assert night.loop("--on-dirty", "continue").code == 0


def test_an_index_that_somebody_has_locked_when_a_commit_is_made_is_named_with_the_way_out(tmp_path: Path) -> None:
    night = Night(tmp_path)
    hook = night.path / ".git/hooks/commit-msg"
    hook.write_text("#!/bin/sh\ntouch .git/index.lock\n")
    hook.chmod(0o755)
    ran = night.loop()
    assert ran.code == 0, ran.err
    assert (
        '"git status" shows the commit as undone, and the next commit would undo it: .git/index could not be written; '
        "once there is no .git/index.lock, run `git reset`" in ran.out
    )
    assert night.git("status", "--porcelain", "answer.txt") == "D  answer.txt\n?? answer.txt"
    (night.path / ".git/index.lock").unlink()
    night.git("reset", "-q")
    assert night.git("status", "--porcelain") == ""


def test_an_index_that_an_agent_broke_is_made_anew_and_named(tmp_path: Path) -> None:
    breaks = "echo 42 > answer.txt; echo garbage > .git/index"
    agent = f'if grep -q "^# Second" $PROMPT; then touch two; else {breaks}; fi; echo ITERATION_COMPLETE'
    night = Night(tmp_path, TWO, agent)
    ran = night.loop()
    assert ran.code == 0, ran.err
    assert "the agent left an index that git cannot read, which was made anew" in ran.out
    assert night.subjects == ["start", "feat: write the answer", "feat: second", "chore(loop): records"]
    assert night.git("status", "--porcelain") == ""


def test_a_loop_in_a_repository_that_cannot_be_read_any_more_has_a_summary(tmp_path: Path) -> None:
    breaks = "echo garbage > .git/index; echo It went well."
    night = Night(tmp_path, agent=f'if grep -q "how it went" "$PROMPT"; then {breaks}; else {HONEST}; fi')
    ran = night.loop("--summary-prompt", "Say how it went.")
    assert ran.out.startswith("# continuous-session n\n")
    assert "the records of the loop were not committed: " in ran.err
    assert [one["title"] for one in night.state["completedItems"]] == ["Write the answer"]


def test_an_index_that_a_hook_broke_after_a_commit_is_made_anew(tmp_path: Path) -> None:
    night = Night(tmp_path)
    hook = night.path / ".git/hooks/post-commit"
    hook.write_text("#!/bin/sh\necho garbage > .git/index\n", "utf-8")
    hook.chmod(0o755)
    ran = night.loop()
    assert ran.code == 0, ran.err
    assert night.subjects == ["start", "feat: write the answer", "chore(loop): records"]
    assert night.git("status", "--porcelain") == ""
