"""Where `raymond init` writes: into this project, at the top of its repository, and nowhere else."""

from pathlib import Path

import pytest

from running import Room


@pytest.fixture
def room(tmp_path: Path) -> Room:
    (tmp_path / "elsewhere").mkdir()
    return Room(tmp_path)


@pytest.mark.parametrize(
    ("link", "args"),
    [
        (".claude", ["--claude"]),
        (".claude/commands", ["--claude"]),
        ("tools", ["--claude", "--dir", "tools/claude"]),
        ("plugin", ["--plugin", "plugin"]),
        ("plugin/.claude-plugin", ["--plugin", "plugin"]),
    ],
)
def test_a_link_that_leads_out_of_the_project_is_refused(room: Room, link: str, args: list[str]) -> None:
    elsewhere = room.path.parent / "elsewhere"
    (room.path / link).parent.mkdir(exist_ok=True)
    (room.path / link).symlink_to(elsewhere)
    done = room.raymond("init", *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: {link} is a link to {elsewhere.resolve()}, which is elsewhere\n"
        "hint: make it a folder, or run this in the project that it leads to\n"
    )
    assert [*elsewhere.iterdir()] == []


def test_a_link_within_the_project_is_followed(room: Room) -> None:
    (room.path / "config").mkdir()
    (room.path / ".claude").symlink_to("config")
    assert room.raymond("init", "--claude").returncode == 0
    assert (room.path / "config/commands/task-loop.start.md").is_file()


def test_a_subdirectory_of_a_repository_is_not_its_top(room: Room) -> None:
    inner = room.path / "docs" / "more"
    inner.mkdir(parents=True)
    (room.path / ".git").mkdir()
    refused = room.raymond("init", "--claude", cwd=inner)
    assert (refused.returncode, refused.stdout) == (2, "")
    error, hint = refused.stderr.splitlines()
    assert error == f"error: this is a subdirectory of the repository {room.path.resolve()}"
    assert hint.startswith("hint: raymond -C ../.. init --claude, ")
    assert [*inner.iterdir()] == []
    assert room.raymond("-C", "../..", "init", "--claude", cwd=inner).returncode == 0
    assert (room.path / ".claude/commands").is_dir()
    assert room.raymond("init", "--claude", "--dir", ".claude", cwd=inner).returncode == 0
    assert (inner / ".claude/commands").is_dir()
