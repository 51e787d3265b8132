"""`raymond init`: slash commands for Claude Code, which a person may change without losing it."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from raymond.cli.init import commands
from running import Room

LOOPS = ("continuous-session", "task-loop", "story-loop")
COMMANDS = dict(commands())


@pytest.fixture
def room(tmp_path: Path) -> Room:
    (tmp_path / "elsewhere").mkdir()
    return Room(tmp_path)


def frontmatter(text: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(text.split("---\n")[1])
    return found


def test_every_loop_has_its_four_commands_and_the_stories_have_theirs() -> None:
    verbs = ("start", "status", "stop", "resume")
    assert set(COMMANDS) == {f"{loop}.{verb}.md" for loop in LOOPS for verb in verbs} | {"prd.status-init.md"}


@pytest.mark.parametrize("loop", LOOPS)
def test_a_command_may_use_what_it_needs_and_nothing_else(loop: str) -> None:
    verbs = [f"Bash(raymond {loop} {verb}:*)" for verb in ("next", "record", "status", "stop")]
    for verb in ("start", "resume"):
        given = frontmatter(COMMANDS[f"{loop}.{verb}.md"])
        assert given["allowed-tools"] == ", ".join([*verbs, "Bash(raymond apply:*)", "Agent"])
    for verb in ("status", "stop"):
        assert frontmatter(COMMANDS[f"{loop}.{verb}.md"])["allowed-tools"] == f"Bash(raymond {loop} {verb}:*)"


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_can_be_started_by_a_model_and_none_has_a_gap(name: str) -> None:
    text = COMMANDS[name]
    assert frontmatter(text)["disable-model-invocation"] is True
    assert "{" not in text


def test_init_writes_them_and_says_what_to_type(room: Room) -> None:
    done = room.raymond("init", "--claude")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "wrote .claude/commands/continuous-session.start.md"
    assert lines[-1] == (
        "next:   git add .claude/commands and commit it, then type /continuous-session.start in Claude Code"
    )
    assert {name: (room.path / ".claude/commands" / name).read_text("utf-8") for name in COMMANDS} == COMMANDS


@pytest.mark.slow
def test_what_a_person_changed_stays_unless_they_say_otherwise(room: Room) -> None:
    room.raymond("init", "--claude")
    folder, own = room.path / ".claude/commands", room.path / "own.md"
    mine, link = folder / "prd.status-init.md", folder / "task-loop.stop.md"
    mine.write_text("mine\n", "utf-8")
    own.write_text("own\n", "utf-8")
    link.unlink()
    link.symlink_to(own)
    kept = [f"kept .claude/commands/{one}, which differs: --force replaces it" for one in (link.name, mine.name)]
    assert room.raymond("init", "--claude").stdout.splitlines()[:-1] == kept
    forced = room.raymond("init", "--claude", "--force")
    assert forced.stdout.splitlines()[:-1] == [f"wrote .claude/commands/{one}" for one in (link.name, mine.name)]
    assert mine.read_text("utf-8") == COMMANDS[mine.name]
    assert (link.is_symlink(), own.read_text("utf-8")) == (False, "own\n")


def test_the_plugin_is_a_folder_with_the_same_commands(room: Room) -> None:
    done = room.raymond("init", "--plugin", "my plugin")
    assert done.stdout.splitlines()[-2:] == [
        "next:   claude --plugin-dir './my plugin', and type /raymond:continuous-session.start",
        "to keep it: claude plugin marketplace add './my plugin' && claude plugin install raymond@raymond",
    ]
    folder = room.path / "my plugin"
    assert json.loads((folder / ".claude-plugin/plugin.json").read_text("utf-8"))["name"] == "raymond"
    market = json.loads((folder / ".claude-plugin/marketplace.json").read_text("utf-8"))
    assert market["plugins"] == [{"name": "raymond", "source": "./"}]
    assert sorted(os.listdir(folder / "commands")) == sorted(COMMANDS)
    assert not (room.path / ".claude").exists()


@pytest.mark.slow
def test_another_folder_of_settings_can_be_named(room: Room) -> None:
    assert room.raymond("init", "--claude", "--dir", "deep/er").returncode == 0
    assert (room.path / "deep/er/commands/continuous-session.start.md").exists()


@pytest.mark.slow
def test_a_subdirectory_of_a_repository_is_not_its_top(room: Room) -> None:
    inner = room.path / "docs" / "more"
    inner.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", room.path], check=True)
    refused = room.raymond("init", "--claude", cwd=inner)
    assert (refused.returncode, refused.stdout) == (2, "")
    error, hint = refused.stderr.splitlines()
    assert error == f"error: this is a subdirectory of the repository {room.path.resolve()}"
    assert hint.startswith("hint: raymond -C ../.. init --claude, ")
    assert [*inner.iterdir()] == []
    assert room.raymond("-C", "../..", "init", "--claude", cwd=inner).returncode == 0
    assert (room.path / ".claude/commands").is_dir()


BAD = {
    "nothing": ([], "init needs to know what to set up"),
    "dir alone": (["--dir", "x", "--plugin", "p"], "--dir goes with --claude"),
    "an empty name": (["--plugin", " "], "--plugin needs the name of a folder"),
    "a file": (["--claude", "--dir", "file"], "file/commands cannot be written: not a directory"),
    "a link": (["--claude", "--dir", "link"], "link is a link to "),
    "a link below": (["--plugin", "plugin"], "plugin/commands is a link to "),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_is_refused_before_anything_is_written(room: Room, case: str) -> None:
    given, expected = BAD[case]
    (room.path / "file").touch()
    (room.path / "plugin").mkdir()
    for link in ("link", "plugin/commands"):
        (room.path / link).symlink_to(room.path.parent / "elsewhere")
    before = sorted(path.as_posix() for path in room.path.rglob("*"))
    done = room.raymond("init", *given)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {expected}")
    assert "\nhint: " in done.stderr
    assert sorted(path.as_posix() for path in room.path.rglob("*")) == before
    assert [*(room.path.parent / "elsewhere").iterdir()] == []
