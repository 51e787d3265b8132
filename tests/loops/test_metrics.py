"""Metrics of a story loop: right numbers, and words where there are none."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raymond.loops import metrics
from raymond.loops.metrics import Effort, Tasks

NOW = datetime(2026, 1, 20, 12, tzinfo=UTC)


def story(id: int, *history: tuple[str, str], **more: Any) -> dict[str, Any]:
    noted = [{"date": date, "result": result, "notes": ""} for date, result in history]
    return {"id": f"US-{id}", "passes": bool(history) and history[-1][1] == "passed", "history": noted, **more}


def status(*stories: dict[str, Any]) -> dict[str, Any]:
    return {"stories": [*stories]}


HALF = status(
    story(1, ("2026-01-11T09:00:00Z", "passed")),
    story(
        2, ("2026-01-12T09:00:00Z", "passed"), ("2026-01-19T09:00:00Z", "failed"), ("2026-01-19T10:00:00Z", "passed")
    ),
    story(3, ("2026-01-19T09:00:00Z", "passed")),
    story(4, ("2026-01-20T09:00:00Z", "failed")),
    story(5),
    story(6, removed=True),
)


def test_everything_is_counted_and_told() -> None:
    found = metrics.measure(HALF, Tasks(6, 1, 3), Effort(6, 1368.0, 2.4), NOW)
    assert metrics.text(found) == (
        "Stories:     ████████████░░░░░░░░ 3/5 passed\n"
        "Pass rate:   60% (1 failed, 1 pending)\n"
        "Tasks:       ████████████░░░░░░░░ 6/10 verified\n"
        "             1 complete but unverified, 3 remaining\n"
        "Per item:    3m 48s, $0.40 (6 verified items)\n"
        "Velocity:    1 story this week, 0.3 per day in 10 days\n"
        "Projected:   2026-01-27, in 7 days\n"
    )
    assert metrics.document(found) == {
        "stories": {"total": 5, "passed": 3, "failed": 1, "pending": 1, "pass_rate": 0.6},
        "tasks": {"total": 10, "verified": 6, "unverified": 1, "remaining": 3},
        "per_verified_item": {"items": 6, "seconds": 228.0, "cost": pytest.approx(0.4)},
        "velocity": {
            "stories_this_week": 1,
            "days": 10,
            "stories_per_day": 0.3,
            "projected_days": 6.7,
            "projected_end": "2026-01-27",
        },
    }


def test_a_dumb_terminal_gets_ascii() -> None:
    told = metrics.text(metrics.measure(HALF, Tasks(1, 0, 1), Effort(), NOW), ascii_=True)
    assert told.isascii()
    assert "Tasks:       ##########---------- 1/2 verified\n" in told


def test_where_nothing_is_known_words_say_so() -> None:
    assert metrics.text(metrics.measure(status(), Tasks(), Effort(), NOW)) == (
        "Stories:     ░░░░░░░░░░░░░░░░░░░░ 0/0 passed\n"
        "Pass rate:   no stories yet\n"
        "Tasks:       ░░░░░░░░░░░░░░░░░░░░ 0/0 verified\n"
        "Per item:    nothing verified yet\n"
        "Velocity:    no story has passed yet\n"
        "Projected:   unknown until a story has passed\n"
    )
    found = metrics.document(metrics.measure(status(), Tasks(), Effort(), NOW))
    assert found["velocity"]["projected_end"] is found["per_verified_item"]["cost"] is None
    told = metrics.text(metrics.measure(HALF, Tasks(), Effort(2), NOW))
    assert "Per item:    an unknown time, an unknown cost (2 verified items)\n" in told


def test_one_day_of_history_is_a_weak_ground_and_says_so() -> None:
    told = metrics.text(
        metrics.measure(
            status(story(1, ("2026-01-20T09:00:00Z", "passed")), story(2), story(3)), Tasks(), Effort(), NOW
        )
    )
    assert "Velocity:    1 story this week, 1.0 per day today\n" in told
    assert "Projected:   2026-01-22, in 2 days (from one day only)\n" in told


def test_when_all_have_passed_nothing_is_projected() -> None:
    found = metrics.measure(status(story(1, ("2026-01-19", "passed"))), Tasks(), Effort(), NOW)
    assert metrics.text(found).endswith("Projected:   all stories have passed\n")
    assert found.velocity.end is None
    assert found.velocity.left == 0


def test_a_pace_that_takes_decades_has_no_date() -> None:
    slow = status(story(0, ("2024-01-20T09:00:00Z", "passed")), *(story(number) for number in range(1, 100)))
    assert "more than ten years at this pace" in metrics.text(metrics.measure(slow, Tasks(), Effort(), NOW))


def test_a_story_passes_when_it_first_did_and_not_in_the_future() -> None:
    found = metrics.measure(
        status(
            story(1, ("2027-01-01T00:00:00Z", "passed"), lastVerified="2026-01-19T00:00:00+01:00"),
            story(2, passes=True),
            story(3, ("no date", "passed")),
            story(4, ("2027-01-01T00:00:00Z", "passed")),
        ),
        *(Tasks(), Effort(), NOW),
    )
    assert (found.passed, found.velocity.week, found.velocity.days) == (4, 1, 3)


def test_tasks_are_counted_by_what_is_known_of_them() -> None:
    class One:
        def __init__(self, status: str, verified: bool) -> None:
            self.status, self.verified = status, verified

    counted = [One("complete", True), One("complete", False), One("planned", False), One("blocked", True)]
    assert metrics.tasks(counted) == Tasks(1, 1, 2)


DATES = st.sampled_from(["", "2026-01-19", "2026-01-19T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59Z"])
HISTORIES = st.lists(st.tuples(DATES | st.text(), st.sampled_from(["passed", "failed", "pending"])), max_size=3)


@given(st.lists(st.tuples(HISTORIES, st.booleans()), max_size=5), st.integers(0, 5), st.floats(0, 1e9) | st.none())
def test_whatever_the_history_says_something_is_told(
    given_: list[tuple[list[tuple[str, str]], bool]], verified: int, amount: float | None
) -> None:
    found = metrics.measure(
        status(*(story(at, *history, passes=passes) for at, (history, passes) in enumerate(given_))),
        *(Tasks(verified, 1, 2), Effort(verified, amount, amount), NOW),
    )
    assert len(metrics.text(found).splitlines()) == 7
    assert metrics.document(found)["stories"]["total"] == len(given_)
