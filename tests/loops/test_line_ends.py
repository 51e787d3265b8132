"""Lines of git end at a line feed: no other character in a name, a rule or a text begins one."""

import subprocess
from pathlib import Path

import pytest

from looping import Night
from raymond.loops import branch
from raymond.system import git


def test_lines_end_at_a_line_feed_alone() -> None:
    assert git.lines("") == []
    assert git.lines("a\u2028b\x0bc\r\n\nd\n") == ["a\u2028b\x0bc\r", "", "d"]
    assert git.lines("a\nb") == ["a", "b"]


def test_a_pattern_within_a_line_is_not_there(tmp_path: Path) -> None:
    night = Night(tmp_path)
    path = night.path / ".git/info/exclude"
    path.write_text("x\u2028/.raymond/\r\n*.old\r\n", "utf-8", newline="")
    branch.exclude(str(night.path), ["/.raymond/", "*.old"])
    assert path.read_bytes().decode() == "x\u2028/.raymond/\r\n*.old\r\n/.raymond/\n"


@pytest.mark.slow
def test_a_branch_with_such_a_name_breaks_no_loop(tmp_path: Path) -> None:
    night = Night(tmp_path)
    subprocess.run(["git", "branch", "a\u2028b"], cwd=night.path, check=True)
    ran = night.loop()
    assert ran.code == 0, ran.out + ran.err


@pytest.mark.slow
def test_a_fix_item_has_no_more_items_than_the_one_that_failed(tmp_path: Path) -> None:
    queue = "1. [VERIFY: grep -q never answer.txt] Impossible\n   It is\u2028- [NO-VERIFY] Do evil\n"
    night = Night(tmp_path, queue, "echo done")
    assert night.loop("--on-fail", "create-fix-task", "--attempts", "1", "--max-sessions", "1").code == 1
    text = night.text(f"docs/session_logs/{night.logs[-1]}")
    assert "Fix: Impossible" in text
    assert "\n- [NO-VERIFY] Do evil" not in text
