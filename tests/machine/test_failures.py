"""The table of failures, row by row, as values."""

from typing import get_args

import pytest

from builders import Play
from raymond.machine.events import AgentFailed, StepFailed
from raymond.machine.failures import (
    CLASSES,
    KINDS,
    LIMIT_LONGEST,
    Kind,
    Response,
    brief,
    opens_at,
    overload_wait,
    respond,
)


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
        ("crash", 0, 9, True, Response(again=True, charged=True, wait=1.0)),
        ("crash", 1, 9, False, Response(again=True, charged=True, wait=5.0)),
        ("crash", 2, 9, False, Response(again=True, charged=True, wait=15.0)),
        ("crash", 8, 9, False, Response(again=True, charged=True, wait=15.0)),
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
    ],
)
def test_every_class_of_failure_has_one_answer(
    kind: Kind, failures: int, retries: int, freshened: bool, response: Response
) -> None:
    assert respond(kind, failures=failures, retries=retries, freshened=freshened) == response


def test_errors_are_journaled_in_part() -> None:
    """Whatever a step wrote can be in them, and they are shown and sent to models."""
    text = "x" * 1_000_000
    play = Play({"START.md": "---\nretries: 0\n---\n"})
    play.begin()
    failed, ended, *_ = play.fail("script", error=text)
    assert isinstance(failed, StepFailed)
    assert isinstance(ended, AgentFailed)
    assert failed.error == ended.error == "x" * 4093 + "..."
    assert brief("x" * 4096) == "x" * 4096


def test_the_table_has_a_row_for_every_class() -> None:
    assert tuple(CLASSES) == KINDS == get_args(Kind)


def test_what_the_infrastructure_did_is_no_step_of_the_work() -> None:
    assert {kind for kind in KINDS if not CLASSES[kind].counted} == {"limit", "overload", "machine"}


def test_a_login_and_a_bill_wait_for_a_person_and_a_limit_and_an_overload_for_time() -> None:
    closing = {kind: CLASSES[kind].closes for kind in KINDS if CLASSES[kind].closes}
    assert closing == {
        "limit": "for a while",
        "overload": "for a while",
        "machine": "for a while",
        "auth": "for a person",
        "billing": "for a person",
    }


def test_an_overloaded_backend_is_tried_after_1_5_15_and_60_seconds_then_every_5_minutes() -> None:
    assert [overload_wait(tries) for tries in range(7)] == [1.0, 5.0, 15.0, 60.0, 300.0, 300.0, 300.0]


NOW = 1_000_000.0


@pytest.mark.parametrize(
    ("kind", "retry_at", "tries", "wait"),
    [
        ("limit", NOW + 3600, 0, 3600.0),
        ("limit", NOW + 3600, 5, 3600.0),
        ("limit", NOW + 0.5, 0, 0.5),
        ("limit", 0.0, 0, 900.0),
        ("limit", 0.0, 5, 900.0),
        ("limit", NOW, 0, 1.0),
        ("limit", NOW - 5, 0, 1.0),
        ("limit", NOW - 5, 2, 15.0),
        ("limit", NOW + LIMIT_LONGEST - 1, 0, LIMIT_LONGEST - 1),
        ("limit", NOW + LIMIT_LONGEST, 0, 900.0),
        ("overload", NOW + 42, 3, 42.0),
        ("overload", 0.0, 0, 1.0),
        ("overload", 0.0, 3, 60.0),
        ("overload", 0.0, 4, 300.0),
        ("overload", NOW - 5, 1, 5.0),
        ("overload", NOW + LIMIT_LONGEST, 1, 5.0),
    ],
)
def test_when_a_closed_backend_is_tried_again(kind: Kind, retry_at: float, tries: int, wait: float) -> None:
    assert opens_at(kind, retry_at, NOW, tries) == NOW + wait
