"""The answers that a question offers."""

import pytest

from raymond.language import choices, reading
from raymond.language.refusal import Refusal
from raymond.language.tags import Ask

OFFERED = ("Yes", "no", "2", "not today")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("Yes", "Yes"),
        (" yes\n", "Yes"),
        ("NOT  TODAY", "not today"),
        ("1", "Yes"),
        ("2", "2"),
        ("4", "not today"),
        *((wrong, None) for wrong in ("", "y", "0", "5", "-1", "yes, no", "²", "9" * 5000)),
    ],
)
def test_a_choice_is_meant_by_its_text_or_else_by_its_number(said: str, meant: str | None) -> None:
    assert choices.pick(OFFERED, said) == meant


@pytest.mark.parametrize(
    "wrong",
    ["", "yes", ",,", "yes, YES", ",".join(map(str, range(60))), f"a,{'b' * 201}", "no,2", "1 2,no", "yes,\uff12"],
)
def test_choices_that_leave_nothing_to_choose_are_refused(wrong: str) -> None:
    read = reading.read(f'<ask next="A" choices="{wrong}">Which?</ask>')
    assert isinstance(read.refused, Refusal)
    assert (read.refused.kind, read.refused.hint) == ("value", 'choices="yes,no"')


def test_a_number_would_make_the_numbers_of_the_others_lie() -> None:
    assert choices.problem("delete, keep, 2") == (
        "`choices` has `2`, and a number selects a choice by its place: add a word to it"
    )
    assert choices.problem("version 2, version 3") == ""


def test_a_choice_that_looks_like_two_is_offered_in_quotes() -> None:
    assert choices.offer(("keep\uff0c 2 delete", "no", "a,b", " c")) == (
        '1 "keep\uff0c 2 delete", 2 no, 3 "a,b", 4 " c"'
    )


def test_what_a_question_shows_and_offers_is_in_its_tag() -> None:
    read = reading.read('<ask next="A" choices="yes, not today" files="a.md b/c.md">Which?</ask>')
    assert read.transitions == (Ask(question="Which?", next="A", choices="yes, not today", files="a.md b/c.md"),)
