"""A plain loop that cannot succeed ends by itself, and says what a person should look at."""

import json
from pathlib import Path

import pytest

from looping import Night


def ralph(night: Night, *args: str) -> tuple[int, str]:
    night.write({"PROMPT.md": "Do it.\n"})
    night.commit("a prompt")
    ran = night.loop("PROMPT.md", *args, loop="ralph")
    return ran.code, ran.out + ran.err


@pytest.mark.slow
def test_a_check_that_cannot_be_green_ends_the_loop_after_three_iterations(tmp_path: Path) -> None:
    night = Night(tmp_path, agent="echo I am done; echo LOOP_COMPLETE")
    code, said = ralph(night, "--gate", "make tset")
    assert code == 4
    told = "stuck: `make tset` is red with the same output, and 3 iterations changed nothing"
    assert f"- Ended: stopped, {told}\n" in said
    assert "- look at the check first: make tset\n" in said
    assert "Sessions used" not in said
    assert "- Iterations used: 3 of 10\n" in said
    assert "Before the first iteration: Verification FAILED (exit 2): make: *** No rule to make target 'tset'" in said
    [row] = json.loads(night.room.raymond("list", "--json").stdout)
    assert (row["status"], row["exit_code"]) == ("stopped", 4)
    assert "3 iterations changed nothing" in row["reason"]


@pytest.mark.slow
def test_a_loop_that_changes_something_goes_on(tmp_path: Path) -> None:
    night = Night(tmp_path, agent="echo x >> x.txt; echo done")
    code, said = ralph(night, "--gate", "sh check.sh", "--max-iterations", "5")
    assert (code, "- Iterations used: 5 of 5\n" in said) == (4, True)


@pytest.mark.slow
def test_a_loop_whose_check_says_something_else_goes_on(tmp_path: Path) -> None:
    night = Night(tmp_path, agent="echo done", **{"check.sh": "date +%N | tr 0-9 a-j; exit 1\n"})
    code, said = ralph(night, "--gate", "sh check.sh", "--max-iterations", "5")
    assert (code, "- Iterations used: 5 of 5\n" in said) == (4, True)


@pytest.mark.slow
def test_a_loop_is_stuck_only_after_as_many_without_a_change(tmp_path: Path) -> None:
    night = Night(tmp_path, agent="[ -e x.txt ] || echo x > x.txt; echo done", **{"check.sh": "exit 1\n"})
    code, said = ralph(night, "--gate", "sh check.sh")
    assert (code, "- Iterations used: 4 of 10\n" in said) == (4, True)


@pytest.mark.slow
def test_why_a_check_was_red_is_its_end_and_not_its_beginning(tmp_path: Path) -> None:
    check = (
        "echo '=== FAILURES ==='; seq 1 50; echo 'FAILED test_core.py::test_strip'; echo '1 failed, 1 passed'; exit 1\n"
    )
    night = Night(tmp_path, agent="echo done", **{"check.sh": check})
    _, said = ralph(night, "--gate", "sh check.sh", "--max-iterations", "1")
    assert "`sh check.sh` ended with exit code 1: 50 / FAILED test_core.py::test_strip / 1 failed, 1 passed" in said
    shown = night.room.raymond("ralph", "status").stdout
    assert "FAILED test_core.py::test_strip / 1 failed, 1 passed" in shown


@pytest.mark.slow
def test_what_differs_in_numbers_is_the_same(tmp_path: Path) -> None:
    night = Night(tmp_path, agent="echo done", **{"check.sh": "echo 1 failed in 0.$(date +%N)s; exit 1\n"})
    code, said = ralph(night, "--gate", "sh check.sh")
    assert (code, "- Iterations used: 3 of 10\n" in said) == (4, True)


QUEUE = "".join(f"{number}. [VERIFY: make tset] Item {word}\n" for number, word in enumerate("abcde", 1))


def test_items_that_fail_the_same_way_without_a_change_end_the_loop(tmp_path: Path) -> None:
    night = Night(tmp_path, QUEUE, "echo I am done; echo ITERATION_COMPLETE")
    ran = night.loop("--attempts", "1")
    assert ran.code == 4
    assert "- Ended: stopped, stuck: 3 items in a row changed nothing and failed the same way: `make tset`" in ran.out
    assert "- look at the check first: make tset\n" in ran.out
    assert "- Sessions used: 3 of 5\n" in ran.out
    assert "## Remaining\n\n- Item d\n- Item e\n" in ran.out
    first = "Before the first item: make tset is red: make: *** No rule to make target 'tset'. Stop."
    assert first in ran.err
    assert first in night.room.raymond("logs", "n").stdout


@pytest.mark.slow
def test_items_that_changed_something_are_all_tried(tmp_path: Path) -> None:
    night = Night(tmp_path, QUEUE, "echo x >> x.txt; echo ITERATION_COMPLETE")
    ran = night.loop("--attempts", "1")
    assert (ran.code, "- Sessions used: 5 of 5\n" in ran.out) == (1, True)
