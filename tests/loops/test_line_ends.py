"""Lines of git end at a line feed: no other character in a name, a rule or a text begins one."""

import subprocess
from pathlib import Path

import pytest

from looping import Night
from raymond.loops.repository import Repository
from raymond.system import git

ENDS = ("\u2028", "\u2029", "\x85", "\u00a0")
"""Characters that Python takes for the end of a line or for a blank, and git does not."""


def repository(path: Path) -> tuple[Repository, str]:
    night = Night(path)
    return Repository(str(night.path), str(path / "index")), night.git("rev-parse", "HEAD")


def test_lines_end_at_a_line_feed_alone() -> None:
    assert git.lines("") == []
    assert git.lines("a\u2028b\x0bc\r\n\nd\n") == ["a\u2028b\x0bc\r", "", "d"]
    assert git.lines("a\nb") == ["a", "b"]


@pytest.mark.parametrize("end", ENDS)
def test_a_branch_whose_name_ends_in_a_blank_is_another_branch(tmp_path: Path, end: str) -> None:
    there, head = repository(tmp_path)
    other = there.commit(there.reference("HEAD^{tree}"), [head], "other\n", "1700000000 +0000")
    there.ask("update-ref", f"refs/heads/main{end}", other)
    there.switch(f"main{end}")
    assert (there.branch(), there.head()) == (f"main{end}", other)


def test_a_worktree_is_read_whatever_its_path_is(tmp_path: Path) -> None:
    there, _ = repository(tmp_path)
    path = tmp_path / "a\n\nworktree /elsewhere\nbranch refs/heads/main\u2028b"
    there.add_worktree(str(path), "x\u2028y")
    assert there.worktrees() == {str(path): "refs/heads/x\u2028y"}


def test_a_filter_may_have_any_name(tmp_path: Path) -> None:
    there, _ = repository(tmp_path)
    there.ask("config", "filter.a\tb\u2028c.clean", "cat")
    assert there.filters() == ["filter.a\tb\u2028c.clean"]


def test_a_pattern_within_a_line_is_not_there(tmp_path: Path) -> None:
    there, _ = repository(tmp_path)
    path = Path(there.top, ".git/info/exclude")
    path.write_text("x\u2028/.raymond/\r\n*.old\r\n", "utf-8", newline="")
    there.exclude(["/.raymond/", "*.old"])
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
