"""docs/ralph-loop.sh: the Ralph loop as a script, with the lines that people know from it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from looping import WAY, Night
from running import PATIENCE

SCRIPT = Path(__file__).parents[2] / "docs" / "ralph-loop.sh"
SECOND = "if [ -e tried ]; then echo 42 > answer.txt; fi; touch tried; echo 'I did something.'"
"""An agent that does it the second time it is sent the prompt."""


def run(night: Night, *args: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """The script, with the raymond of these tests on the PATH."""
    command = night.path.parent / "bin" / "raymond"
    command.parent.mkdir(exist_ok=True)
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m raymond "$@" --workspace {WAY}\n', "utf-8")
    command.chmod(0o755)
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", str(SCRIPT), *args],
        cwd=night.path,
        env={**night.room.environment, "PATH": path, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def milestones(out: str) -> list[str]:
    """The lines that the script has of its own."""
    return [line for line in out.splitlines() if line.startswith(("=== ", "Loop completed"))]


@pytest.mark.slow
def test_each_iteration_and_the_end_are_told_in_the_lines_of_the_script(tmp_path: Path) -> None:
    night = Night(tmp_path, agent="echo 42 > answer.txt; echo 'I wrote it.'")
    night.write({"PROMPT.md": "Write the answer.\n"})
    done = run(night, GATE="sh check.sh")
    assert done.returncode == 0, done.stdout
    assert milestones(done.stdout) == ["=== Starting iteration 1 of 5 ===", "Loop completed successfully!"]
    assert "- Ended: completed: the check was red at the start and is green now" in done.stdout
    assert done.stdout.endswith("Loop completed successfully!\n")


@pytest.mark.slow
def test_the_limit_counts_and_the_exit_code_is_that_of_the_loop(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=SECOND)
    night.write({"TASK.md": "Write the answer.\n"})
    done = run(night, "2", PROMPT="TASK.md", UNTIL="ALL DONE")
    assert done.returncode == 4, done.stdout
    assert milestones(done.stdout) == ["=== Starting iteration 1 of 2 ===", "=== Starting iteration 2 of 2 ==="]


@pytest.mark.slow
def test_a_failure_pauses_the_loop_where_that_is_asked_for(tmp_path: Path) -> None:
    night = Night(tmp_path, agent="echo 'I looked at it.'")
    night.write({"PROMPT.md": "Write the answer.\n"})
    done = run(night, "3", "true", GATE="sh check.sh")
    assert done.returncode == 3, done.stdout
    assert milestones(done.stdout) == ["=== Starting iteration 1 of 3 ==="]
    assert "Pausing for review" in done.stdout
