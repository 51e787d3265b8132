"""Git or the machine fails in a step of a loop: that is tried again, and then a person is asked; no item fails of it."""

import shutil
from pathlib import Path

import pytest

from looping import HONEST, SIGNED, Night

pytestmark = pytest.mark.slow
FAKE = """#!/bin/bash
if [ -s "TROUBLE" ]; then
  read -r state times command < "TROUBLE"
  if [[ " $* " == *" $command "* ]] && [[ "${RAYMOND_STATE-}" == *"$state" ]]; then
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


MADE = ["start", "feat: write the answer", "chore(loop): records"]


@pytest.mark.parametrize(
    ("state", "command"),
    [
        ("1_START.py", "read-tree"),
        ("NEXT.py", "read-tree"),
        ("NEXT.py", "ls-tree"),
        ("PREPARE.py", "diff-tree"),
        ("PREPARE.py", "cat-file"),
        ("COMMIT.py", "hash-object"),
        ("COMMIT.py", "unpack-objects"),
        ("COMMIT.py", "commit-tree"),
        ("COMMIT.py", "update-ref"),
        ("COMMIT.py", "write-tree"),
    ],
)
def test_a_git_that_fails_once_costs_no_item(tmp_path: Path, state: str, command: str) -> None:
    night = troubled(tmp_path, state, command, 1)
    ran = night.loop()
    assert not (tmp_path / "home/trouble").exists(), "it did fail"
    assert ran.code == 0, ran.out + ran.err
    assert night.subjects == MADE
    assert night.git("rev-parse", "raymond/n") == night.git("rev-parse", night.tip)


@pytest.mark.parametrize("state", ["PREPARE.py", "COMMIT.py"])
def test_settings_that_git_does_not_tell_are_not_taken_for_none(tmp_path: Path, state: str) -> None:
    night = troubled(tmp_path, state, "config --list", 1)
    gpg, hook = tmp_path / "gpg", night.path / "hooks/commit-msg"
    hook.parent.mkdir()
    for path, script in ((gpg, f"cat > /dev/null\n{SIGNED}"), (hook, 'echo Seen >> "$1"\n')):
        path.write_text(f"#!/bin/sh\n{script}", "utf-8")
        path.chmod(0o755)
    for name, value in (("gpg.program", str(gpg)), ("commit.gpgsign", "true"), ("core.hooksPath", "hooks")):
        night.git("config", name, value)
    night.commit("a hook")
    ran = night.loop()
    assert not (tmp_path / "home/trouble").exists(), "it did fail"
    assert ran.code == 0, ran.out + ran.err
    made = night.git("cat-file", "commit", f"{night.tip}~1")
    assert "gpgsig " in made
    assert made.endswith("Seen")


@pytest.mark.parametrize(
    ("state", "command"), [("NEXT.py", "read-tree"), ("PREPARE.py", "diff-tree"), ("COMMIT.py", "commit-tree")]
)
def test_a_git_that_fails_all_the_time_lets_the_loop_pause_with_the_work_in_the_tree(
    tmp_path: Path, state: str, command: str
) -> None:
    night = troubled(tmp_path, state, command)
    ran = night.loop()
    assert ran.code == 3, ran.out + ran.err
    assert night.state["status"] == "paused"
    if state != "NEXT.py":
        assert (night.room.folder("n") / "workspace/1/tree/answer.txt").read_text("utf-8") == "42\n"
    assert "- Ended: paused: Git or the machine fails: " in ran.out
    (tmp_path / "home/trouble").unlink()
    ran = night.loop("--yes", verb="resume")
    assert ran.code == 0, ran.out + ran.err
    assert night.subjects.count("feat: write the answer") == 1
    assert night.text("answer.txt") == "42\n"
    assert [one["title"] for one in night.state["completedItems"]] == ["Write the answer"]


def test_an_item_that_failed_and_cannot_be_put_away_waits_for_a_person(tmp_path: Path) -> None:
    night = troubled(tmp_path, "FAILED.py", "update-ref", agent="echo 41 > answer.txt; echo ITERATION_COMPLETE")
    ran = night.loop("--attempts", "1")
    assert ran.code == 3, ran.out
    assert (night.room.folder("n") / "workspace/1/tree/answer.txt").read_text("utf-8") == "41\n"


def test_the_plain_loop_pauses_too(tmp_path: Path) -> None:
    night = troubled(tmp_path, "PREPARE.py", "diff-tree")
    night.write({"PROMPT.md": "Make it 42\n"})
    ran = night.loop("PROMPT.md", "--gate", "sh check.sh", loop="ralph")
    assert ran.code == 3, ran.out + ran.err
    (tmp_path / "home/trouble").unlink()
    ran = night.loop("--yes", verb="resume", loop="ralph")
    assert ran.code == 0, ran.out + ran.err
    assert night.text("answer.txt") == "42\n"


def test_a_summary_that_cannot_be_written_is_printed(tmp_path: Path) -> None:
    night = Night(tmp_path)
    gpg = tmp_path / "gpg"
    gpg.write_text(f"#!/bin/sh\n! grep -q '^continuous-session: ' || exit 1\n{SIGNED}", "utf-8")
    gpg.chmod(0o755)
    night.git("config", "gpg.program", str(gpg))
    night.git("config", "commit.gpgsign", "true")
    ran = night.loop()
    assert (ran.code, night.subjects) == (0, MADE[:-1])
    assert ran.out.startswith("# continuous-session n\n")
    assert "the summary was not written to the branch: " in ran.err
