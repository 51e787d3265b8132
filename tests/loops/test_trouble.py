"""Git or the machine fails in a step of a loop: that is tried again, and then a person is asked; no item fails of it."""

import shutil
from pathlib import Path

import pytest

from looping import HONEST, SIGNED, Night

pytestmark = pytest.mark.slow
FAKE = """#!/bin/bash
if [ -s "TROUBLE" ]; then
  read -r state times command < "TROUBLE"
  if [[ " $* " == *" $command "* ]] && grep -qa "$state" /proc/$PPID/cmdline; then
    echo "$state $((times - 1)) $command" > "TROUBLE"
    [ "$times" = 1 ] && rm "TROUBLE"
    echo "fatal: no space left on device" >&2
    exit 128
  fi
fi
exec REAL "$@"
"""


def troubled(path: Path, state: str, command: str, times: int = 99, agent: str = HONEST) -> Night:
    """A night in which a command of git fails some times in a state."""
    night = Night(path, agent=agent)
    fake = path / "bin/git"
    fake.parent.mkdir()
    trouble = path / "home/trouble"
    fake.write_text(FAKE.replace("REAL", str(shutil.which("git"))).replace("TROUBLE", str(trouble)), "utf-8")
    fake.chmod(0o755)
    night.room.environment["PATH"] = f"{fake.parent}:{night.room.environment['PATH']}"
    trouble.write_text(f"{state} {times} {command}\n", "utf-8")
    return night


@pytest.mark.parametrize(
    ("state", "command"),
    [
        ("NEXT.py", "write-tree"),
        ("NEXT.py", "update-ref"),
        ("PREPARE.py", "diff-tree"),
        ("PREPARE.py", "write-tree"),
        ("PREPARE.py", "--git-path"),
        ("COMMIT.py", "commit-tree"),
        ("COMMIT.py", "update-ref"),
    ],
)
def test_a_git_that_fails_once_costs_no_item(tmp_path: Path, state: str, command: str) -> None:
    night = troubled(tmp_path, state, command, 1)
    ran = night.loop()
    assert not (tmp_path / "home/trouble").exists(), "it did fail"
    assert ran.code == 0, ran.out + ran.err
    assert night.subjects == ["start", "feat: write the answer", "chore(loop): records"]
    assert night.git("status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("state", "command"),
    [
        ("NEXT.py", "diff-index --cached --quiet"),
        ("NEXT.py", "write-tree"),
        ("NEXT.py", "--get commit.gpgsign"),
        ("COMMIT.py", "--get commit.gpgsign"),
        ("COMMIT.py", "write-tree"),
    ],
)
def test_a_git_that_fails_once_is_not_taken_for_an_answer(tmp_path: Path, state: str, command: str) -> None:
    night = troubled(tmp_path, state, command, 1)
    gpg = tmp_path / "gpg"
    gpg.write_text(f"#!/bin/sh\ncat > /dev/null\n{SIGNED}", "utf-8")
    gpg.chmod(0o755)
    night.git("config", "gpg.program", str(gpg))
    night.git("config", "commit.gpgsign", "true")
    night.write({"staged.txt": "mine\n"})
    night.git("add", "staged.txt")
    ran = night.loop("--on-dirty", "continue")
    assert not (tmp_path / "home/trouble").exists(), "it did fail"
    assert ran.code == 0, ran.out + ran.err
    assert night.subjects == ["start", "feat: write the answer", "chore(loop): records"]
    assert "gpgsig " in night.git("cat-file", "commit", "HEAD~1")
    assert night.git("status", "--porcelain") == "A  staged.txt"
    assert "Noticed" not in ran.out


def test_an_index_that_stays_behind_a_commit_is_named_with_the_way_out(tmp_path: Path) -> None:
    night = troubled(tmp_path, "COMMIT.py", "update-index -z --index-info", 2)
    ran = night.loop()
    assert ran.code == 0, ran.out + ran.err
    assert '"git status" shows the commit as undone, and the next commit would undo it: ' in ran.out
    night.git("reset", "-q")
    assert night.git("status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("state", "command"), [("NEXT.py", "write-tree"), ("PREPARE.py", "write-tree"), ("COMMIT.py", "commit-tree")]
)
def test_a_git_that_fails_all_the_time_lets_the_loop_pause_with_the_work_in_the_tree(
    tmp_path: Path, state: str, command: str
) -> None:
    night = troubled(tmp_path, state, command)
    ran = night.loop()
    assert ran.code == 3, ran.out + ran.err
    assert f"`git {command}` failed: fatal: no space left on device" in ran.err
    assert night.state["status"] == "paused"
    if state != "NEXT.py":
        assert night.text("answer.txt") == "42\n"
    assert "- Ended: paused: Git or the machine fails: " in ran.out
    (tmp_path / "home/trouble").unlink()
    ran = night.loop("--yes", verb="resume")
    assert ran.code == 0, ran.out + ran.err
    assert night.subjects.count("feat: write the answer") == 1
    assert night.git("show", "HEAD:answer.txt") == "42"
    assert [one["title"] for one in night.state["completedItems"]] == ["Write the answer"]
    assert night.git("status", "--porcelain") == ""


def test_an_item_that_failed_and_cannot_be_put_away_waits_for_a_person(tmp_path: Path) -> None:
    night = troubled(tmp_path, "FAILED.py", "update-ref", agent="echo 41 > answer.txt; echo ITERATION_COMPLETE")
    ran = night.loop("--attempts", "1")
    assert ran.code == 3, ran.out
    assert night.text("answer.txt") == "41\n"


def test_the_plain_loop_pauses_too(tmp_path: Path) -> None:
    night = troubled(tmp_path, "PREPARE.py", "write-tree")
    night.write({"PROMPT.md": "Make it 42\n"})
    ran = night.loop("PROMPT.md", "--gate", "sh check.sh", loop="ralph")
    assert ran.code == 3, ran.out + ran.err
    (tmp_path / "home/trouble").unlink()
    ran = night.loop("--yes", verb="resume", loop="ralph")
    assert ran.code == 0, ran.out + ran.err
    assert night.git("show", "HEAD:answer.txt") == "42"


def test_a_summary_that_cannot_be_written_is_printed(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=f"rm -rf docs/summaries; touch docs/summaries; {HONEST}", docs__summaries="")
    ran = night.loop()
    assert ran.out.startswith("# continuous-session n\n")
    assert "the summary was not written to a file: " in ran.err
