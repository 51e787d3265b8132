"""What a person says about an item that no command can check: yes, what is missing, or neither."""

import pytest

from raymond.loops.judging import Answer, meant


@pytest.mark.parametrize(
    "said",
    ["yes", "Y", "ok", "Okay.", "done", "DONE!", "lgtm", "passed", "looks good", "Looks good to me!", "Yes, looks good"]
    + [" yes \n", "ok, done.", "yes!!", "`yes`"],
)
def test_a_plain_agreement_is_a_yes(said: str) -> None:
    assert meant(said) == Answer.YES


@pytest.mark.parametrize(
    "said",
    [
        "Yes, great work",
        "done, but it is not red",
        "ok but red",
        "sure",
        "fine",
        "👍",
        "",
        "?",
        "done?",
        "looks good?",
        "❌ done",
        "~~done~~",
    ],
)
def test_what_may_mean_yes_is_asked_back(said: str) -> None:
    assert meant(said) == Answer.UNCLEAR


@pytest.mark.parametrize(
    "said", ["no", "No.", "n", "nope", "no, more red", "more red", "yellow is missing", "not done", "looks wrong"]
)
def test_anything_else_is_what_is_missing(said: str) -> None:
    assert meant(said) == Answer.NO


def test_one_word_that_is_said_again_is_what_is_missing() -> None:
    assert meant("tests", before="tests") == Answer.NO
    assert meant("Yes, great work", before="Yes, great work") == Answer.UNCLEAR
    assert meant("", before="") == Answer.UNCLEAR
