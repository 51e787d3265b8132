"""A loop by its id, from anywhere: the same view and the same stop as in its own directory."""

import re
from pathlib import Path

import pytest

from looping import WAIT, Night
from running import until

TWO = "1. [VERIFY: sh check.sh] Write the answer\n2. [VERIFY: sh two.sh] Write the other\n"


@pytest.mark.slow
def test_status_of_an_id_shows_the_loop(tmp_path: Path) -> None:
    night = Night(tmp_path, TWO, "echo 42 > answer.txt; echo ITERATION_COMPLETE", **{"two.sh": "exit 1\n"})
    night.loop("--attempts", "1")
    elsewhere = night.room.raymond("-C", str(tmp_path), "status", "n").stdout
    assert elsewhere.startswith("continuous-session n: failed (1 of 2 done, 1 failed)\nMode:     EXTERNAL, COMPLETE\n")
    assert "  ✓ Write the answer (passed" in elsewhere
    assert "NEXT.py" not in elsewhere
    assert night.room.raymond("status", "n", "--agents").stdout.startswith("n: failed (1 of 2 done, 1 failed)\n")


@pytest.mark.slow
def test_stop_of_an_id_lets_the_item_end(tmp_path: Path) -> None:
    night = Night(tmp_path, TWO, f"touch $TEST_ROOM/../half\n{WAIT}echo 42 > answer.txt; echo ITERATION_COMPLETE")
    with night.room.start("continuous-session", "start", "--id", "n", "--pause", "0s") as live:
        until((tmp_path / "half").exists, "the agent works")
        said = night.room.raymond("-C", str(tmp_path), "stop", "n").stdout
        assert re.match("Stopping n. Session 1 ends first; raymond continuous-session status shows it.\n", said)
        (tmp_path / "go").touch()
        live.process.wait()
    assert night.room.raymond("list").stdout.count("stopped on request: 1 of 2 done") == 1
    again = night.room.raymond("stop", "n")
    assert "n has ended" in again.stdout + again.stderr
