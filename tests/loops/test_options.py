"""Options of a loop that change where and how it works."""

from datetime import datetime
from pathlib import Path

import pytest

from looping import HONEST, LOG, Night

pytestmark = pytest.mark.slow


def test_edit_counts_from_the_next_item_on_also_while_an_agent_works(tmp_path: Path) -> None:
    agent = f"while [ ! -e $TEST_ROOM/../go ]; do sleep 0.02; done; {HONEST}"
    night = Night(tmp_path, agent=agent)
    editor = tmp_path / "editor"
    typed = "2. [VERIFY: sh check.sh] Typed in edit\n3. [VERIFY sh check.sh] Without a colon"
    editor.write_text(f'#!/bin/sh\necho "{typed}" >> "$1"\n', "utf-8")
    editor.chmod(0o755)
    with night.room.start("continuous-session", "start", "--id", "n", "--pause", "0s", "--strict") as live:
        live.sees("Selected item")
        done = night.room.raymond("continuous-session", "edit", environment={"EDITOR": str(editor)})
        assert done.stderr == (
            "warning: what you wrote:7: `[VERIFY sh check.sh]` needs a colon after the name of the tag, so the item is not verified\n"
            "3 items in the queue\ncommitted on raymond/n: an agent is at work, so it counts from the next item on\n"
        )
        told = night.room.raymond("continuous-session", "learn", "the answer is a number")
        assert "an agent is at work" in told.stdout
        (tmp_path / "go").touch()
        assert live.process.wait(60) == 0, live.err
    assert [item["title"] for item in night.state["completedItems"]] == ["Write the answer", "Typed in edit"]
    assert "the answer is a number" in night.text("docs/critical-learnings.md")
    assert "the agent" not in live.out
    assert "Typed in edit" not in (night.path / LOG).read_text("utf-8")
    assert "[VERIFY sh check.sh] Without a colon: `[VERIFY sh check.sh]` needs a colon" in live.out, (
        "and is passed over"
    )


def test_an_ejected_workflow_is_a_loop_that_can_be_changed(tmp_path: Path) -> None:
    night = Night(tmp_path)
    folder = tmp_path / "mine"
    assert night.room.raymond("continuous-session", "eject", str(folder)).returncode == 0
    work = folder / "WORK.md"
    work.write_text(work.read_text("utf-8") + "\nSing while you work.\n", "utf-8")
    ran = night.loop("--workflow", str(folder))
    assert ran.code == 0, ran.err
    assert any("Sing while you work." in str(one.get("sent", "")) for one in ran.transcript("main_work1"))
    again = night.room.raymond("continuous-session", "eject", str(folder))
    assert (again.returncode, "already exists" in again.stderr) == (2, True)


@pytest.mark.slow
def test_the_pause_before_an_item_is_no_part_of_its_duration(tmp_path: Path) -> None:
    night = Night(tmp_path, "1. [VERIFY: sh check.sh] Write the answer\n2. [VERIFY: sh check.sh] Look at it\n")
    assert night.loop("--pause", "6s").code == 0
    state = night.state
    began, ended = (datetime.fromisoformat(state[name]) for name in ("startedAt", "lastUpdated"))
    spent = sum(item["duration"] for item in state["completedItems"]) / 1000
    assert len(state["completedItems"]) == 2
    assert spent + 6 <= (ended - began).total_seconds()
