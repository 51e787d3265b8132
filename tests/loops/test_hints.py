"""What a person is told who cannot go on: the place, and the command that leads on."""

import signal
from pathlib import Path

import pytest

from looping import WAIT, Night
from running import until

pytestmark = pytest.mark.slow


def test_an_editor_that_fails_changes_nothing_while_an_agent_works(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=f"touch $TEST_ROOM/../on\n{WAIT}")
    with night.room.start("continuous-session", "start", "--id", "n"):
        until((tmp_path / "on").exists, "the agent")
        done = night.room.raymond("continuous-session", "edit", environment={"EDITOR": "false", "VISUAL": ""})
        assert (done.returncode, "or try again when no agent works" in done.stderr) == (2, True)
        assert not (night.room.folder("n") / "loop/edited.md").exists()


def test_another_prompt_does_not_hide_a_loop_that_was_cut_off(tmp_path: Path) -> None:
    night = Night(tmp_path, agent=f"touch $TEST_ROOM/../on\n{WAIT}echo done")
    night.git("rm", "-rq", "docs")
    night.write({"A.md": "Do it.\n", "B.md": "Do that.\n"})
    with night.room.start("ralph", "A.md", "--id", "n") as live:
        until((tmp_path / "on").exists, "the agent")
        told = night.room.raymond("ralph", "stop").stdout
        assert told == "Stopping n. Iteration 1 ends first; raymond ralph status shows it.\n"
        assert not (night.path / "docs").exists(), "the plain loop makes no folder"
        live.signal(signal.SIGKILL)
        live.process.wait()
    (tmp_path / "go").touch()
    assert night.room.raymond("ralph", "B.md", "--max-iterations", "1", "--id", "m").returncode == 0
    assert "next:   raymond resume n\n" in night.room.raymond("ralph", "status").stdout
    ended = night.room.raymond("ralph", "resume")
    assert "Loop was stopping. Mark complete and show summary? [Y/n] yes" in ended.stderr
    assert (ended.returncode, "- Ended: stopped: on request\n" in ended.stdout) == (0, True)
    assert not (night.path / "docs").exists()
