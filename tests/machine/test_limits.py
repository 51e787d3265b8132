"""What a run may use altogether, and which of it is used up."""

import pytest

from builders import place, start
from raymond.machine.events import LimitsChanged
from raymond.machine.limits import UNPRICED_TURNS, LimitName, Limits, Usage, limits_of

ALL = Limits(budget=2.5, max_iterations=10, max_turns=20, max_time=60.0)


# Which limits hold


@pytest.mark.parametrize(
    ("limits", "other", "both"),
    [
        (Limits(), ALL, ALL),
        (ALL, Limits(), ALL),
        (Limits(), Limits(), Limits()),
        (Limits(budget=3.0), ALL, Limits(3.0, 10, 20, 60.0)),
        (Limits(max_iterations=3), ALL, Limits(2.5, 3, 20, 60.0)),
        (Limits(max_turns=3), ALL, Limits(2.5, 10, 3, 60.0)),
        (Limits(max_time=3.0), ALL, Limits(2.5, 10, 20, 3.0)),
        (Limits(0.0, 0, 0, 0.0), ALL, Limits(0.0, 0, 0, 0.0)),
        (Limits(budget=3.0), Limits(max_iterations=4), Limits(budget=3.0, max_iterations=4)),
    ],
)
def test_limits_hold_over_others_where_they_say_something(limits: Limits, other: Limits, both: Limits) -> None:
    assert limits.over(other) == both


def test_a_start_sets_every_limit_and_a_change_those_it_names() -> None:
    started = start(place({"START.md": ""}), budget=2.5, max_iterations=10, max_turns=20, max_time=60.0)
    assert limits_of(started) == ALL
    assert limits_of(start(place({"START.md": ""}))) == Limits(0.0, 0, 0, 0.0)
    assert limits_of(LimitsChanged(max_turns=3)) == Limits(max_turns=3)
    assert limits_of(LimitsChanged(budget=0.0)) == Limits(budget=0.0)


# Which limit is reached


@pytest.mark.parametrize(
    ("used", "limit"),
    [
        (Usage(), None),
        (Usage(iterations=9, cost=2.49, turns=19, unpriced=0, time=59.9), None),
        (Usage(iterations=10), "iterations"),
        (Usage(iterations=11), "iterations"),
        (Usage(cost=2.5), "budget"),
        (Usage(cost=9.0), "budget"),
        (Usage(turns=20), "turns"),
        (Usage(time=60.0), "time"),
        (Usage(iterations=10, cost=2.5, turns=20, time=60.0), "iterations"),
        (Usage(cost=2.5, turns=20, time=60.0), "budget"),
        (Usage(turns=20, time=60.0), "turns"),
    ],
)
def test_the_first_limit_that_is_used_up_is_reached(used: Usage, limit: LimitName | None) -> None:
    assert ALL.reached(used) == limit


@pytest.mark.parametrize("limits", [Limits(), Limits(0.0, 0, 0, 0.0)])
def test_where_nothing_or_zero_is_set_only_turns_of_unknown_cost_are_limited(limits: Limits) -> None:
    much = Usage(iterations=10**9, cost=1e9, turns=10**9, unpriced=UNPRICED_TURNS - 1, time=1e9)
    assert limits.reached(much) is None
    assert limits.reached(Usage(unpriced=UNPRICED_TURNS)) == "unpriced"
    assert limits.reached(Usage(unpriced=UNPRICED_TURNS + 1)) == "unpriced"


def test_with_a_limit_of_turns_any_number_of_them_may_be_of_unknown_cost() -> None:
    assert Limits(max_turns=300).reached(Usage(turns=299, unpriced=299)) is None


def test_turns_of_unknown_cost_are_told_before_the_time() -> None:
    assert Limits(max_time=60.0).reached(Usage(unpriced=UNPRICED_TURNS, time=60.0)) == "unpriced"


# How much a limit allows


@pytest.mark.parametrize(
    ("limit", "amount"),
    [("budget", 2.5), ("iterations", 10.0), ("turns", 20.0), ("unpriced", 200.0), ("time", 60.0), ("wait", 0.0)],
)
def test_how_much_a_limit_allows(limit: LimitName, amount: float) -> None:
    assert ALL.amount(limit) == amount


@pytest.mark.parametrize("limit", ["budget", "iterations", "turns", "time"])
def test_a_limit_that_is_not_set_allows_nothing_to_name(limit: LimitName) -> None:
    assert Limits().amount(limit) == 0.0
