"""All worktrees of a repository share .git/info/exclude: what Raymond writes there is nobody's tampering."""

from pathlib import Path

import pytest

from folders import DONE, Folders
from looping import HONEST, Night

pytestmark = pytest.mark.slow
EXCLUDE = ".git/info/exclude"


def test_loops_in_two_worktrees_leave_each_other_alone(tmp_path: Path) -> None:
    one = Folders(tmp_path)
    one.git("worktree", "add", "-q", "../side", "-b", "side")
    one.ask("next")
    assert one.ask("next", "--docs", "plan", at="../side")["status"] == "item"
    one.write({"work.txt": "b\n", "../side/work.txt": "b\n"})
    assert one.ask("record", said=DONE)["verdict"] == "passed"
    assert "/plan/.task-loop-state.json*" in one.text(EXCLUDE).splitlines()
    assert one.ask("record", "--docs", "plan", said=DONE, at="../side")["verdict"] == "passed"


def test_what_another_loop_needs_stays_when_an_agents_line_is_put_back(tmp_path: Path) -> None:
    one = Folders(tmp_path)
    one.git("worktree", "add", "-q", "../side", "-b", "side")
    one.ask("next")
    one.ask("next", "--docs", "plan", at="../side")
    one.write({"work.txt": "b\n", "../side/work.txt": "b\n", EXCLUDE: f"{one.text(EXCLUDE)}secret.txt\n"})
    assert one.ask("record", said=DONE)["reason"] == "changed .git/info/exclude"
    lines = one.text(EXCLUDE).splitlines()
    assert ("secret.txt" in lines, "/plan/.task-loop-state.json*" in lines) == (False, True)
    assert one.ask("record", "--docs", "plan", said=DONE, at="../side")["verdict"] == "passed"


@pytest.mark.parametrize(
    "line",
    [
        "/src/**/.task-loop-state.json*",
        "/*/.task-loop-state.json*",
        "/src/[a-z]/.task-loop-state.json*",
        "/src/.task-loop-state.json**",
        "!/docs/.task-loop-state.json*",
        "src/.task-loop-state.json*",
        "/.raymond",
    ],
)
def test_a_line_that_only_looks_like_ours_is_tampering(tmp_path: Path, line: str) -> None:
    night = Night(tmp_path, agent=f"echo '{line}' >> {EXCLUDE}; {HONEST}")
    done = night.loop()
    assert "changed .git/info/exclude" in done.out
    assert line not in night.text(EXCLUDE).splitlines()


def test_a_line_of_ours_that_an_agent_removes_is_put_back(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=f"sed -i /ralph/d {EXCLUDE}; {HONEST}")
    assert "changed .git/info/exclude" in night.loop().out
    assert "/docs/.ralph-loop-state.json*" in night.text(EXCLUDE).splitlines()


def test_a_file_that_an_agent_hides_by_a_line_like_ours_is_seen(tmp_path: Path) -> None:
    hides = "mkdir src; echo 42 > src/.task-loop-state.json.py; echo '/src/.task-loop-state.json*' >> .git/info/exclude"
    night = Night(tmp_path, agent=f"{hides}; {HONEST}")
    done = night.loop()
    assert "hid src/.task-loop-state.json.py from git by a new rule in .git/info/exclude" in done.out
    assert night.subjects == ["start", "chore(loop): records"]


def test_the_rights_of_the_file_stay(tmp_path: Path) -> None:
    night = Night(tmp_path)
    (night.path / EXCLUDE).chmod(0o640)
    assert night.loop().code == 0
    assert (night.path / EXCLUDE).stat().st_mode & 0o777 == 0o640
