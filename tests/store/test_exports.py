"""What a run leaves in its project: written for others, out of git's sight, through no link, and removed with the run."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from raymond.errors import JournalError
from raymond.store import exports


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """What no link may lead to."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "r.json").write_text("safe")
    return tmp_path / "outside"


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_the_state_file_is_written_and_private(tree: Path) -> None:
    exports.put_state(str(tree), "r", b"one")
    exports.put_state(str(tree), "r", b"two")
    assert everything(tree) == [".raymond", ".raymond/.gitignore", ".raymond/workflows", ".raymond/workflows/r.json"]
    assert exports.state_file(str(tree), "r") == f"{tree}/.raymond/workflows/r.json"
    assert (tree / ".raymond/workflows/r.json").read_bytes() == b"two"
    assert stat.S_IMODE((tree / ".raymond").stat().st_mode) == 0o700


def test_real_git_sees_nothing_of_it(tree: Path) -> None:
    subprocess.run(["git", "init", "-q", tree], check=True)
    exports.put_state(str(tree), "r", b"{}")
    exports.make(f"{exports.tasks(str(tree), 'r')}/main", str(tree))
    done = subprocess.run(["git", "status", "--porcelain", "-uall"], cwd=tree, check=True, capture_output=True)
    assert done.stdout == b""


def test_a_gitignore_that_is_there_is_kept(tree: Path) -> None:
    (tree / ".raymond").mkdir()
    (tree / ".raymond" / ".gitignore").write_text("mine\n")
    exports.put_state(str(tree), "r", b"{}")
    assert (tree / ".raymond" / ".gitignore").read_text() == "mine\n"


def test_a_task_folder_is_made_with_what_is_missing_above_it(tree: Path) -> None:
    exports.make(f"{exports.tasks(str(tree), 'r')}/main", str(tree))
    exports.make(f"{exports.tasks(str(tree), 'r')}/main", str(tree))
    assert everything(tree) == [
        ".raymond",
        ".raymond/.gitignore",
        ".raymond/tasks",
        ".raymond/tasks/r",
        ".raymond/tasks/r/main",
    ]
    assert stat.S_IMODE((tree / ".raymond/tasks/r/main").stat().st_mode) == 0o700


@pytest.mark.parametrize("name", [".raymond", ".raymond/workflows"])
def test_a_link_on_the_way_is_refused(tree: Path, outside: Path, name: str) -> None:
    (tree / name).parent.mkdir(exist_ok=True)
    (tree / name).symlink_to(outside)
    with pytest.raises(JournalError) as caught:
        exports.put_state(str(tree), "r", b"{}")
    assert str(caught.value) == f"{tree}/.raymond/workflows/r.json: not a directory"
    assert everything(outside) == ["r.json"]
    assert (outside / "r.json").read_text() == "safe"


def test_a_link_in_place_of_the_state_file_is_replaced(tree: Path, outside: Path) -> None:
    (tree / ".raymond" / "workflows").mkdir(parents=True)
    (tree / ".raymond" / "workflows" / "r.json").symlink_to(outside / "r.json")
    exports.put_state(str(tree), "r", b"{}")
    assert (tree / ".raymond" / "workflows" / "r.json").read_bytes() == b"{}"
    assert (outside / "r.json").read_text() == "safe"


def test_a_gitignore_that_is_a_link_is_not_written_through(tree: Path, outside: Path) -> None:
    (tree / ".raymond").mkdir()
    (tree / ".raymond" / ".gitignore").symlink_to(outside / "new")
    exports.put_state(str(tree), "r", b"{}")
    assert everything(outside) == ["r.json"]


@pytest.mark.parametrize("name", [".raymond/tasks", ".raymond/tasks/r", ".raymond/tasks/r/main"])
def test_a_task_folder_is_made_through_no_link(tree: Path, outside: Path, name: str) -> None:
    (tree / name).parent.mkdir(parents=True)
    (tree / name).symlink_to(outside)
    with pytest.raises(JournalError) as caught:
        exports.make(f"{tree}/.raymond/tasks/r/main", str(tree))
    assert str(caught.value) == f"{tree}/.raymond/tasks/r/main: not a directory"
    assert everything(outside) == ["r.json"]


# Remove

MINE = ["tasks/r/main/file", "debug/r_20260101_120000/x", "debug/r_20260101_120000_2/x", "workflows/r.json"]
OTHERS = [
    *("config.toml", "tasks/r2/main/file", "tasks/r_x/file", "debug/r2_20260101_120000/x", "debug/r_notes/x"),
    *("workflows/r2.json", "workflows/r.json.mine", "workflows/rXjson", "mine/r/x"),
]


def test_what_a_run_left_goes_and_everything_else_stays(tree: Path) -> None:
    for name in (*MINE, *OTHERS):
        (tree / ".raymond" / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / ".raymond" / name).write_text("x")
    exports.remove(str(tree), "r")
    left = [name for name in everything(tree / ".raymond") if (tree / ".raymond" / name).is_file()]
    assert left == sorted(OTHERS)
    assert not (tree / ".raymond/tasks/r").exists()
    exports.remove(str(tree), "r")


def test_nothing_behind_a_link_goes(tree: Path, outside: Path) -> None:
    (tree / ".raymond" / "tasks").mkdir(parents=True)
    (tree / ".raymond" / "tasks" / "r").symlink_to(outside)
    (tree / ".raymond" / "workflows").symlink_to(outside)
    exports.remove(str(tree), "r")
    assert (outside / "r.json").read_text() == "safe"
    assert everything(tree) == [".raymond", ".raymond/tasks", ".raymond/workflows"]


def test_a_project_that_is_gone_has_nothing_to_remove(tree: Path) -> None:
    os.rmdir(tree)
    exports.remove(str(tree), "r")
    assert not tree.exists()
