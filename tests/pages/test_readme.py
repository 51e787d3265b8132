"""The README, followed from top to bottom in an empty folder with a checkout beside it."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from looping import Night
from running import PATIENCE, Room
from typist import Typist

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
LOOP, WORKFLOW, NIGHT, TEAM = (text for language, text in BLOCKS if language == "bash")
SEEN, TOLD = (text for language, text in BLOCKS if language == "text")
PROJECT = {
    "PROMPT.md": "Make the tests pass, one at a time.\n",
    "Makefile": "test:\n\t@grep -qs 42 answer.txt && echo 3 passed || { echo 1 failed, 2 passed; exit 1; }\n",
}
LIES = "n=$(cat tries 2>/dev/null); echo x$n > tries; [ x$n = xxx ] && echo 42 > answer.txt; echo LOOP_COMPLETE\n"
"""An agent that says twice that it is done, and the third time it is."""


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


@pytest.mark.slow
def test_the_loop_at_the_top_says_what_the_page_says(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=LIES, **PROJECT)
    night.git("rm", "-rq", "docs")
    night.commit("no documents")
    person = Typist(night.room, *shlex.split(LOOP)[1:], "--pause", "0s", columns=200)
    for line in SEEN.splitlines():
        person.sees(re.escape(line).replace("4d1c5e0b7f21", "[0-9a-f]{12}"))
    assert person.end() == 0
    told = night.room.raymond("summary", "--since", "12h").stdout
    for line in TOLD.splitlines():
        shape = re.escape(line).replace("shop", r"\S+").replace("8s", r"\d+s").replace(r"\$0\.06", r"\$0\.03")
        assert re.search(f"^{shape}$", told, re.MULTILINE), (line, told)
    assert night.room.raymond("apply", "fix").returncode == 0
    assert (night.path / "answer.txt").read_text() == "42\n"


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
