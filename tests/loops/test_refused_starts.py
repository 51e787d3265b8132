"""A loop that is refused has changed nothing."""

from pathlib import Path

import pytest

from looping import Night

pytestmark = pytest.mark.slow
EXCLUDE = ".git/info/exclude"


def test_a_loop_that_is_refused_has_written_nothing_for_git(tmp_path: Path) -> None:
    night = Night(tmp_path)
    before = night.text(EXCLUDE)
    night.write({"dirt.txt": "mine\n", "docs/.task-loop-state.json.20250101T000000Z": "{}\n", ".raymond/notes": "\n"})
    for flags in ((), ("--on-dirty", "discard", "--branch", "a..b"), ("--docs", "nowhere")):
        done = night.room.raymond("continuous-session", "start", *flags)
        assert (done.returncode, night.text(EXCLUDE)) == (2, before), done.stderr
    done = night.room.raymond("continuous-session", "start")
    assert "the tree has changes that are not committed: dirt.txt\n" in done.stderr, "and nothing that git will not see"
    (night.path / "dirt.txt").unlink()
    done = night.room.raymond("continuous-session", "start")
    assert done.returncode == 0, done.stderr
    assert "/docs/.task-loop-state.json*" in night.text(EXCLUDE).splitlines()
    assert night.git("status", "--porcelain", "--", ".raymond", "docs/.task-loop-state.json.20250101T000000Z") == ""


def test_a_file_that_git_knows_is_never_left_out_of_what_is_not_committed(tmp_path: Path) -> None:
    night = Night(tmp_path, **{".raymond__notes": "\n"})
    night.write({".raymond/notes": "changed\n"})
    assert "the tree has changes that are not committed: .raymond/notes\n" in night.loop().err
