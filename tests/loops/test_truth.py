"""How a loop has ended is told the same everywhere: in `list`, `status`, `wait` and their JSON."""

import json
from pathlib import Path
from typing import Any

import pytest

from looping import Night

TWO = "1. [VERIFY: sh check.sh] Write the answer\n2. [VERIFY: sh two.sh] Write the other\n"


def ends(path: Path, agent: str, *args: str, loop: str = "continuous-session", queue: str = TWO) -> dict[str, Any]:
    """A loop that has ended, as its row in `list --json`; `status`, `wait` and the exit code say the same."""
    night = Night(path, queue, agent, **{"two.sh": "grep -q 7 two.txt\n", "PROMPT.md": "Do it.\n"})
    ran = night.loop(*(["PROMPT.md"] if loop == "ralph" else []), *args, loop=loop)
    [row] = json.loads(night.room.raymond("list", "--json").stdout)
    for verb in ("status", "wait"):
        said = json.loads(night.room.raymond(verb, "n", "--json").stdout)
        assert {key: said[key] for key in ("status", "reason", "exit_code")} == {
            key: row[key] for key in ("status", "reason", "exit_code")
        }, verb
    assert (ran.code, night.room.raymond("wait", "n").returncode) == (row["exit_code"], row["exit_code"])
    assert f"n: {row['status']} ({row['reason']})" in night.room.raymond("status", "n").stdout
    assert row["is_over"]
    found: dict[str, Any] = row
    return found


@pytest.mark.slow
def test_a_loop_with_an_item_that_failed_has_failed(tmp_path: Path) -> None:
    row = ends(tmp_path, "echo 42 > answer.txt; echo ITERATION_COMPLETE", "--attempts", "1")
    told = (row["status"], row["exit_code"], row["reason"], row["group"])
    assert told == ("failed", 1, "1 of 2 done, 1 failed", "needs you")


@pytest.mark.slow
def test_a_loop_that_reached_its_limit_has_completed(tmp_path: Path) -> None:
    agent = "echo 42 > answer.txt; echo 7 > two.txt; echo ITERATION_COMPLETE"
    row = ends(tmp_path, agent, "--max-sessions", "1")
    assert (row["status"], row["exit_code"], row["reason"], row["group"]) == ("completed", 0, "1 of 2 done", "done")


@pytest.mark.slow
def test_a_loop_with_an_item_to_review_has_failed(tmp_path: Path) -> None:
    row = ends(tmp_path, "echo true > check.sh; echo 7 > two.txt; echo ITERATION_COMPLETE")
    assert (row["status"], row["exit_code"], row["reason"]) == ("failed", 1, "1 of 2 done, 1 to review")


@pytest.mark.slow
def test_ralph_that_is_not_finished_was_stopped(tmp_path: Path) -> None:
    row = ends(tmp_path, "echo x >> x.txt; echo done", "--gate", "sh check.sh", "--max-iterations", "2", loop="ralph")
    told = (row["status"], row["exit_code"], row["reason"], row["group"])
    assert told == ("stopped", 4, "not finished after 2 iterations: 0 done, 2 red", "needs you")


@pytest.mark.slow
def test_a_loop_at_work_says_where_it_stands(tmp_path: Path) -> None:
    night = Night(tmp_path, TWO, "echo 'I cannot'; echo ITERATION_FAILED")
    assert night.loop("--pause-on-fail").code == 3
    shown = night.room.raymond("list").stdout
    assert "continuous-session" in shown
    assert "Write the answer: the agent said that it cannot do this: I cannot" in shown
