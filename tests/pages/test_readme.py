"""The README, followed from top to bottom in an empty folder with a checkout beside it."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from running import PATIENCE, Room

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
LOOP, WORKFLOW, NIGHT, TEAM = (text for language, text in BLOCKS if language == "bash")
TICKS = "PROMPT: [{text: ticked, writes: {fix_plan.md: '- [x] one'}}]"
"""What plays the model: an agent that does one thing, and ticks it."""


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    command = tmp_path / "bin" / "raymond"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m raymond "$@"\n', "utf-8")
    command.chmod(0o755)
    room.environment["PATH"] = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    yield room
    room.clear()


def typed(room: Room, block: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["bash", "-c", block],
        cwd=room.path,
        env=room.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_the_loop_at_the_top_ends_when_every_box_is_ticked(room: Room) -> None:
    (room.path / "fix_plan.md").write_text("- [ ] one")
    (room.path / "replies.yaml").write_text(TICKS)
    done = typed(room, LOOP)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert (room.path / "fix_plan.md").read_text() == "- [x] one"


@pytest.mark.slow
def test_the_journeys_of_a_workflow_a_night_and_a_team(room: Room) -> None:
    shutil.copytree(ROOT / "examples", room.path / "examples")
    done = typed(room, WORKFLOW)
    shown = re.search(r"It prints `(.*?)`", PAGE)
    assert shown
    assert (done.returncode, done.stdout) == (0, f"{shown[1]}\n"), done.stderr

    night = typed(room, NIGHT)
    assert night.returncode == 0, night.stderr
    for said in ("night\nRaymond\n", "night: completed", "Is Orchestrion easy to spell?", "JUDGE.md"):
        assert said in night.stdout
    assert room.raymond("resume", "night").returncode == 0

    team = typed(room, TEAM)
    assert team.returncode == 0, team.stderr
    assert "waiting: notes" in team.stderr
    assert "raymond answer notes" in team.stdout


def test_a_fresh_machine_needs_two_commands_and_a_checkout_installs() -> None:
    plain = [text for language, text in BLOCKS if not language]
    assert "make demo\nmake test\n" in plain
    assert "uv tool install .\npipx install .\npip install .\n" in plain
    assert len(plain) == 3, "a block that nothing runs: call it bash"
