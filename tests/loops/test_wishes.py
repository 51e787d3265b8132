"""What a person tells a loop while an agent works: nothing of it is lost, and it undoes nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from looping import HONEST, Night

pytestmark = pytest.mark.slow


def editing(night: Night, tmp_path: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Open the queue in an editor that does this."""
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    editor.chmod(0o755)
    return night.room.raymond("continuous-session", "edit", environment={"EDITOR": str(editor)})


@pytest.mark.parametrize("typed", ["", 'echo "3. [NO-VERIFY] Typed" >> "$1"'])
def test_an_edit_undoes_nothing_that_was_written_while_the_editor_was_open(tmp_path: Path, typed: str) -> None:
    queue = "1. [VERIFY: sh check.sh] First\n2. [BLOCKED: x] Second\n"
    agent = f"while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; mkdir -p .github; date > .github/ci.yml; {HONEST}"
    night = Night(tmp_path, queue, agent)
    with night.room.start("continuous-session", "start", "--id", "n", "--pause", "0s", "--max-sessions", "1") as live:
        live.sees("Selected item")
        ended = f"while kill -0 {live.process.pid} && [ ! -e {night.path}/docs/summaries ]; do sleep 0.02; done"
        done = editing(night, tmp_path, f"touch {tmp_path}/go\n{ended}\n{typed}")
        assert live.process.wait(60) == 1, live.err
    assert ("the loop has ended meanwhile: the queue is in" if typed else "nothing was changed") in done.stderr
    left = night.text(f"docs/session_logs/{night.logs[-1]}").partition("## Next Steps\n\n")[2].splitlines()
    assert left[0].startswith("1. [BLOCKED: waits for a person (raymond review n): added .github/ci.yml"), left
    assert left[1:3] == ["2. [BLOCKED: x] Second", "3. [NO-VERIFY] Typed" if typed else ""]


def test_an_edit_leaves_the_item_that_repairs_another(tmp_path: Path) -> None:
    agent = f"""
    if ! grep -q '^# Fix' "$PROMPT"; then while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; echo ITERATION_COMPLETE
    else {HONEST}; fi
    """
    night = Night(tmp_path, agent=agent)
    flags = ("--id", "n", "--pause", "0s", "--attempts", "1", "--on-fail", "create-fix-task", "--max-sessions", "2")
    with night.room.start("continuous-session", "start", *flags) as live:
        live.sees("Selected item")
        editing(night, tmp_path, 'echo "2. [NO-VERIFY] Typed" >> "$1"')
        editing(night, tmp_path, 'echo "3. [NO-VERIFY] Typed later" >> "$1"')
        (tmp_path / "go").touch()
        live.process.wait(60)
    assert [item["title"] for item in night.state["completedItems"]] == ["Fix: Write the answer"]
    assert night.state["queueSnapshot"] == ["Typed", "Typed later"]


def test_learnings_that_are_told_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    night = Night(tmp_path)
    argv = [sys.executable, "-m", "raymond", "continuous-session", "learn"]
    told = [subprocess.Popen([*argv, f"lesson {n}"], cwd=night.path, env=night.room.environment) for n in range(8)]
    assert [one.wait() for one in told] == [0] * 8
    assert night.text("docs/critical-learnings.md").count("lesson") == 8
