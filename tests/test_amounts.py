"""Money and counts are finite and small enough to add up for ever."""

import pytest

from raymond import amounts

DIGITS = int("9" * 4000)


@pytest.mark.parametrize("value", [0, 0.5, "7", "1e3", 1_000_000_000, "1_000"])
def test_dollars_are_read_from_numbers_and_texts(value: object) -> None:
    assert amounts.dollars(value) == float(str(value))


@pytest.mark.parametrize("value", [1e308, 1_000_000_001, DIGITS, "1e308", "inf", float("inf")])
def test_no_amount_is_larger_than_can_be_added_up(value: object) -> None:
    with pytest.raises(ValueError, match=r"a number of dollars, at most 1,000,000,000$"):
        amounts.dollars(value)


@pytest.mark.parametrize("value", [-1, "-0.01", float("nan"), "nan", "", "five", None, True, [5]])
def test_what_is_no_amount_is_none(value: object) -> None:
    with pytest.raises(ValueError, match=r"a number of dollars, 0 or more$"):
        amounts.dollars(value)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (0, "1 or more"),
        (-3, "1 or more"),
        (1.5, "1 or more"),
        (True, "1 or more"),
        ("1.0", "1 or more"),
        ("+1", "1 or more"),
        ("٣", "1 or more"),
        (10**23, "at most 1,000,000,000"),
        ("9" * 5000, "at most 1,000,000,000"),
        (DIGITS, "at most 1,000,000,000"),
    ],
)
def test_a_count_is_a_whole_number_in_its_range(value: object, error: str) -> None:
    with pytest.raises(ValueError, match=f"a whole number, {error}$"):
        amounts.count(value)
    assert amounts.count("12") == amounts.count(12) == 12
    assert amounts.count(0, least=0) == 0
