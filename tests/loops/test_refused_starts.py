"""A loop that is refused has changed nothing."""

from pathlib import Path

import pytest

from looping import Night

pytestmark = pytest.mark.slow


def test_a_loop_that_is_refused_has_written_nothing_for_git(tmp_path: Path) -> None:
    night = Night(tmp_path)
    exclude = night.path / ".git/info/exclude"
    before = exclude.read_text("utf-8"), night.git("for-each-ref")
    state = "docs/.task-loop-state.json.20250101T000000Z"
    night.write({"dirt.txt": "mine\n", state: "{}\n", ".raymond/notes": "\n"})
    for flags in (("--from", "nowhere"), ("--branch", "a..b"), ("--docs", "nowhere")):
        done = night.room.raymond("continuous-session", "start", *flags)
        assert done.returncode == 2
        assert (exclude.read_text("utf-8"), night.git("for-each-ref")) == before, done.stderr
    ran = night.loop()
    assert ran.code == 0, ran.err
    assert "are taken along: dirt.txt\n" in ran.err, "and nothing that git will not see"
    assert "/docs/.task-loop-state.json*" in exclude.read_text("utf-8").splitlines()
    assert night.git("status", "--porcelain", "--", ".raymond", state) == ""


def test_a_file_that_git_knows_is_never_left_out_of_what_is_not_committed(tmp_path: Path) -> None:
    night = Night(tmp_path, **{".raymond__notes": "\n"})
    night.write({".raymond/notes": "changed\n"})
    assert "are taken along: .raymond/notes\n" in night.loop().err
