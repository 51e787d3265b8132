"""Lines of a loop's log."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raymond.loops.formats import records

WHEN = datetime(2025, 1, 17, 14, 0, tzinfo=UTC)


def test_the_lines_are_those_that_programs_look_for() -> None:
    texts = [
        records.starting_line(1, 5),
        records.selected_line("Implement user auth"),
        records.implemented_line(),
        records.verifying_line("npm test"),
        records.verified_line(0, is_green=True),
        records.committing_line(),
        records.completed_line(1, 228.4),
    ]
    assert [records.log_line(WHEN, text) for text in texts] == [
        "[2025-01-17T14:00:00Z] ralph-loop: Starting iteration 1/5",
        '[2025-01-17T14:00:00Z] ralph-loop: Selected item: "Implement user auth"',
        "[2025-01-17T14:00:00Z] ralph-loop: Implementation complete",
        "[2025-01-17T14:00:00Z] ralph-loop: Running verification: npm test",
        "[2025-01-17T14:00:00Z] ralph-loop: Verification PASSED (exit 0)",
        "[2025-01-17T14:00:00Z] ralph-loop: Committing changes",
        "[2025-01-17T14:00:00Z] ralph-loop: Iteration 1 complete (3m 48s)",
    ]


def test_times_are_in_utc_and_the_loop_has_its_name() -> None:
    when = WHEN.astimezone(timezone(timedelta(hours=2)))
    assert records.log_line(when, "x", "task-loop") == "[2025-01-17T14:00:00Z] task-loop: x"


def test_a_loop_without_a_limit_counts_up() -> None:
    assert records.starting_line(7, 0) == "Starting iteration 7"
    assert records.starting_line(4, 5, again=True) == "Starting iteration 4/5 (again)"


def test_a_red_check_is_told() -> None:
    assert records.verified_line(2, is_green=False) == "Verification FAILED (exit 2)"
    assert records.verified_line(2, is_green=True) == "Verification PASSED (exit 2)", "which was expected"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        *((-1, "0s"), (0.9, "0s"), (48, "48s"), (60, "1m 0s"), (228, "3m 48s"), (3600, "1h 0m 0s")),
        *((3723, "1h 2m 3s"), (90000, "25h 0m 0s")),
    ],
)
def test_a_duration_is_told_to_the_second(seconds: float, expected: str) -> None:
    assert records.duration(seconds) == expected


@given(st.text())
def test_a_title_stays_in_its_line(title: str) -> None:
    line = records.log_line(WHEN, records.selected_line(title))
    assert line.isprintable() or "\u200c" in line or "\u200d" in line
    assert len(line.splitlines()) == 1


def test_a_title_that_moves_the_cursor_is_shown_as_escapes() -> None:
    assert records.selected_line("a\r\nb\x1b[2J") == 'Selected item: "a b\\x1b[2J"'


def test_a_text_of_several_lines_is_one_line() -> None:
    assert records.log_line(WHEN, "a\nb\x07") == "[2025-01-17T14:00:00Z] ralph-loop: a b\\x07"
