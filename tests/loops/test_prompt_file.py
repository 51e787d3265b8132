"""The prompt file of the plain loop, wherever it is and whatever becomes of it."""

import shutil
from pathlib import Path

import pytest

from looping import HONEST, Night

pytestmark = pytest.mark.slow
FLAGS = "--id n --pause 0s --max-iterations 3".split()


def test_a_prompt_outside_of_the_repository(tmp_path: Path) -> None:
    night = Night(tmp_path)
    (tmp_path / "p.md").write_text("Make it 42\n", "utf-8")
    done = night.room.raymond("ralph", str(tmp_path / "p.md"), "--gate", "sh check.sh", *FLAGS)
    assert done.returncode == 0, done.stdout
    assert night.text("answer.txt") == "42\n"


def test_a_prompt_in_a_folder_is_not_taken_for_one_above(tmp_path: Path) -> None:
    night = Night(tmp_path, agent="echo 42 > sub/answer.txt; echo more >> PROMPT.md; echo ITERATION_COMPLETE")
    night.write({"sub/PROMPT.md": "Make it 42\n", "PROMPT.md": "another\n", "sub/check.sh": "grep -q 42 answer.txt\n"})
    night.commit("prompts")
    night.write({"sub/PROMPT.md": "Make it 42, please\n"})
    night.agent("echo 42 > answer.txt; echo more >> ../PROMPT.md; echo ITERATION_COMPLETE")
    done = night.room.raymond("ralph", "--cd", "sub", "PROMPT.md", "--gate", "sh check.sh", *FLAGS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert night.git("show", "--format=", "--name-only", night.tip).split() == ["PROMPT.md", "sub/answer.txt"]
    assert night.git("status", "--porcelain") == "M sub/PROMPT.md"


@pytest.mark.parametrize("removal", ["rm $TEST_ROOM/PROMPT.md", ": > $TEST_ROOM/PROMPT.md"])
def test_a_prompt_that_is_gone_is_asked_for(tmp_path: Path, removal: str) -> None:
    night = Night(tmp_path, agent=f"{removal}; echo x >> said.txt; {HONEST}")
    night.write({"PROMPT.md": "Do the work\n"})
    done = night.room.raymond("ralph", "PROMPT.md", *FLAGS)
    assert done.returncode == 3, done.stderr
    assert "paused: the prompt PROMPT.md is gone or empty: write it, then continue" in done.stdout
    assert night.text("said.txt") == "x\n", "no agent is sent an empty prompt"
    night.agent(f"echo x >> said.txt; {HONEST}")
    night.write({"PROMPT.md": "Do more\n"})
    done = night.room.raymond("ralph", "resume", "--yes")
    assert done.returncode == 0, done.stderr
    assert night.text("said.txt") == "x\n" * 3


def test_a_prompt_may_be_a_link(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=f'grep -q "Follow me" "$PROMPT" && echo x >> said.txt; {HONEST}')
    (tmp_path / "p.md").write_text("Follow me\n", "utf-8")
    (night.path / "PROMPT.md").symlink_to(tmp_path / "p.md")
    assert night.room.raymond("ralph", "PROMPT.md", *FLAGS).returncode == 0
    assert night.text("said.txt") == "x\n" * 3


@pytest.mark.parametrize("form", ["sha1", "sha256"])
def test_what_a_person_moved_and_did_not_commit_is_taken_along_as_it_is(tmp_path: Path, form: str) -> None:
    """Folders that became files and files that became folders, also where names of objects are longer."""
    night = Night(tmp_path)
    night.write({"data/one": "1\n", "data/two": "2\n", "file": "f\n"})
    if form == "sha256":
        shutil.rmtree(night.path / ".git")
        night.git("init", "-q", "-b", "main", "--object-format=sha256", ".")
        night.git("config", "user.name", "Ada")
        night.git("config", "user.email", "ada@example.com")
    night.commit("data")
    (night.path / "data").rename(tmp_path / "elsewhere")
    (night.path / "data").symlink_to("../elsewhere")
    (night.path / "file").unlink()
    night.write({"file/in it": "x\n", "PROMPT.md": "Make it 42\n"})
    done = night.room.raymond("ralph", "PROMPT.md", "--gate", "sh check.sh", *FLAGS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert night.git("show", "--format=", "--name-only", f"{night.tip}~1").split() == ["answer.txt"]
    taken = night.git("show", "--format=", "--no-renames", "--name-status", f"{night.tip}~2").splitlines()
    assert taken == ["A\tPROMPT.md", "A\tdata", "D\tdata/one", "D\tdata/two", "D\tfile", "A\tfile/in it"]
    assert night.git("status", "--porcelain").splitlines() == [
        *("D data/one", " D data/two", " D file", "?? PROMPT.md", "?? data"),
    ]
    assert (night.path / "file/in it").read_text("utf-8") == "x\n"
