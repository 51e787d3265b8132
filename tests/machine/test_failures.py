"""The table of failures, row by row, as values."""

from typing import get_args

import pytest

from raymond.machine.failures import KINDS, Kind, Response, overload_wait, respond


@pytest.mark.parametrize(
    ("kind", "failures", "retries", "freshened", "response"),
    [
        ("limit", 0, 3, False, Response(again=True, closes=True)),
        ("limit", 9, 3, True, Response(again=True, closes=True)),
        ("overload", 0, 0, False, Response(again=True, closes=True)),
        ("overload", 9, 0, True, Response(again=True, closes=True)),
        ("auth", 0, 3, False, Response(closes=True)),
        ("billing", 0, 3, False, Response(closes=True)),
        ("silent", 0, 3, False, Response(again=True, charged=True)),
        ("silent", 2, 3, False, Response(again=True, charged=True)),
        ("silent", 3, 3, False, Response(charged=True)),
        ("silent", 0, 0, False, Response(charged=True)),
        ("crash", 2, 3, True, Response(again=True, charged=True)),
        ("crash", 3, 3, False, Response(charged=True)),
        ("context", 9, 0, False, Response(again=True, fresh=True)),
        ("context", 0, 3, True, Response()),
        ("refusal", 0, 0, False, Response(again=True, fresh=True)),
        ("refusal", 0, 3, True, Response()),
        ("unreadable", 0, 3, False, Response(charged=True)),
        ("script", 0, 3, False, Response(charged=True)),
        ("time", 0, 3, False, Response(charged=True)),
        ("setup", 0, 3, False, Response(charged=True)),
        ("session", 0, 3, False, Response(charged=True)),
        ("cap", 0, 3, False, Response(charged=True)),
        ("a class of a later release", 0, 3, False, Response(charged=True)),
    ],
)
def test_every_class_of_failure_has_one_answer(
    kind: str, failures: int, retries: int, freshened: bool, response: Response
) -> None:
    assert respond(kind, failures=failures, retries=retries, freshened=freshened) == response


def test_the_list_of_classes_is_complete() -> None:
    assert get_args(Kind) == KINDS


def test_an_overloaded_backend_is_tried_after_1_5_15_and_60_seconds_then_every_5_minutes() -> None:
    assert [overload_wait(tries) for tries in range(7)] == [1.0, 5.0, 15.0, 60.0, 300.0, 300.0, 300.0]
