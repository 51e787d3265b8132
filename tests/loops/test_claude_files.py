"""`raymond init`: slash commands for Claude Code, which a person may change without losing it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from raymond.digests import sha256
from raymond.loops import claude_files
from running import Room

LOOPS = ("continuous-session", "task-loop", "story-loop")


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


def frontmatter(text: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(text.split("---\n")[1])
    return found


def test_every_loop_has_its_four_commands_and_the_stories_have_theirs() -> None:
    verbs = ("start", "status", "stop", "resume")
    expected = {f"{loop}.{verb}.md" for loop in LOOPS for verb in verbs} | {"prd.status-init.md"}
    assert set(claude_files.commands()) == expected


@pytest.mark.parametrize("loop", LOOPS)
def test_who_works_through_a_loop_may_use_four_verbs_and_the_agent_tool_and_nothing_else(loop: str) -> None:
    verbs = ("next", "record", "status", "stop")
    allowed = ", ".join([*(f"Bash(raymond {loop} {verb}:*)" for verb in verbs), "Agent"])
    for verb in ("start", "resume"):
        assert frontmatter(claude_files.commands()[f"{loop}.{verb}.md"])["allowed-tools"] == allowed
    for verb in ("status", "stop"):
        given = frontmatter(claude_files.commands()[f"{loop}.{verb}.md"])
        assert given["allowed-tools"] == f"Bash(raymond {loop} {verb}:*)"


@pytest.mark.parametrize("name", claude_files.commands())
def test_no_command_can_be_started_by_a_model_and_none_has_a_gap(name: str) -> None:
    text = claude_files.commands()[name]
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
    there = {name: (room.path / ".claude/commands" / name).read_text("utf-8") for name in claude_files.commands()}
    assert there == claude_files.commands()


def test_what_a_person_changed_stays_and_what_raymond_wrote_is_renewed(room: Room) -> None:
    room.raymond("init", "--claude")
    folder = room.path / ".claude/commands"
    mine, old = folder / "prd.status-init.md", folder / "task-loop.stop.md"
    mine.write_text("mine\n", "utf-8")
    old.write_text("of an earlier release\n", "utf-8")
    noted = folder / ".raymond-files"
    lines = [line for line in noted.read_text("utf-8").splitlines() if not line.endswith("  task-loop.stop.md")]
    digest = sha256(b"of an earlier release\n").hexdigest()
    noted.write_text("\n".join([*lines, f"{digest}  task-loop.stop.md"]) + "\n", "utf-8")
    done = room.raymond("init", "--claude")
    assert done.stdout.splitlines()[:3] == [
        "renewed .claude/commands/task-loop.stop.md",
        "11 files are as they should be",
        "kept .claude/commands/prd.status-init.md, which was changed: --force replaces it",
    ]
    assert mine.read_text("utf-8") == "mine\n"
    assert old.read_text("utf-8") == claude_files.commands()["task-loop.stop.md"]
    again = room.raymond("init", "--claude")
    assert "kept .claude/commands/prd.status-init.md" in again.stdout, "once is not for ever"
    forced = room.raymond("init", "--claude", "--force")
    assert forced.stdout.splitlines()[0] == "renewed .claude/commands/prd.status-init.md"
    assert mine.read_text("utf-8") == claude_files.commands()["prd.status-init.md"]


def test_a_link_of_a_person_is_a_change_of_theirs(room: Room) -> None:
    room.raymond("init", "--claude")
    path, own = room.path / ".claude/commands/prd.status-init.md", room.path / "own.md"
    own.write_text("own\n", "utf-8")
    path.unlink()
    path.symlink_to(own)
    assert "kept .claude/commands/prd.status-init.md" in room.raymond("init", "--claude").stdout
    room.raymond("init", "--claude", "--force")
    assert not path.is_symlink()
    assert own.read_text("utf-8") == "own\n"


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
    assert sorted(os.listdir(folder / "commands")) == sorted(claude_files.commands())
    assert not (room.path / ".claude").exists()


def test_another_folder_of_settings_can_be_named(room: Room) -> None:
    assert room.raymond("init", "--claude", "--dir", "deep/er").returncode == 0
    assert (room.path / "deep/er/commands/continuous-session.start.md").exists()


BAD = {
    "nothing": (
        [],
        (
            "init needs to know what to set up\n"
            "hint: raymond init --claude, or --plugin DIR; a workflow needs no set-up: raymond demo shows one"
        ),
    ),
    "dir alone": (
        ["--dir", "x", "--plugin", "p"],
        "--dir goes with --claude\nhint: raymond init --claude --dir DIR",
    ),
    "an empty name": (["--plugin", " "], "--plugin needs the name of a folder\nhint: raymond init --plugin DIR"),
    "a file": (
        ["--claude", "--dir", "file"],
        "file is not a folder\nhint: name another one, or move it away",
    ),
    "a folder in the place of a file": (
        ["--claude", "--dir", "odd"],
        "odd/commands/prd.status-init.md is a folder, and a file of Raymond has that name\nhint: move it away",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_is_refused_before_anything_is_written(room: Room, case: str) -> None:
    given, expected = BAD[case]
    (room.path / "file").touch()
    (room.path / "odd/commands/prd.status-init.md").mkdir(parents=True)
    before = sorted(path.as_posix() for path in room.path.rglob("*"))
    done = room.raymond("init", *given)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"error: {expected}\n")
    assert sorted(path.as_posix() for path in room.path.rglob("*")) == before
