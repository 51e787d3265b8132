"""A run that a person cancelled: nothing follows any more."""

from typing import Any

import pytest

from builders import Play
from raymond.machine import requests, schedule
from raymond.machine.events import RequestTaken, RunStopped
from raymond.machine.requests import Request
from raymond.machine.sender import Sender
from raymond.views import status

FILES = {"START.md": "", "A.md": "", "B.md": "", "S.sh": ""}


def cancelled() -> Play:
    play = Play(FILES)
    play.say("<fork>A</fork><ask next='B'>Which?</ask>")
    play.ask("cancel")
    return play


def test_it_is_the_end_of_a_run() -> None:
    play = cancelled()
    assert play.last[1:] == [RunStopped(kind="cancelled", at_once=True)]
    assert (play.run.final_status, play.run.is_over, schedule.owed(play.run)) == ("cancelled", True, [])
    assert (status.run_status(play.run), status.exit_code(play.run)) == ("cancelled", 1)
    assert play.pass_time(10**6) == []


@pytest.mark.parametrize(
    "what",
    [
        {"kind": "answer", "text": "this"},
        {"kind": "limits", "budget": 5.0},
        {"kind": "move", "agent": "main", "state": "B"},
        {"kind": "stop", "now": True},
        {"kind": "cancel"},
    ],
    ids=lambda what: str(what["kind"]),
)
def test_nothing_can_be_asked_of_it(what: dict[str, Any]) -> None:
    assert cancelled().refused(**what) == "test-1 was cancelled"


def test_its_exit_code_is_always_the_same() -> None:
    play = Play(FILES)
    play.fail("auth")
    assert status.exit_code(play.run) == 5
    play.ask("cancel")
    assert status.exit_code(play.run) == 1


def test_no_driver_resumes_it() -> None:
    """One may find that it was left a request to cancel the run."""
    play = cancelled()
    assert requests.resume(play.run, "1") == []


def test_a_run_that_has_failed_or_was_stopped_can_be_cancelled_and_one_that_is_done_cannot() -> None:
    failed = Play(FILES)
    failed.fail("setup")
    failed.pass_time()
    failed.ask("cancel")
    assert failed.run.final_status == "cancelled"
    stopped = Play(FILES)
    stopped.stop()
    stopped.ask("cancel")
    assert stopped.run.final_status == "cancelled"
    done = Play(FILES)
    done.say("<result>x</result>")
    done.pass_time()
    assert done.refused("cancel") == "test-1 has ended"


@pytest.mark.parametrize("steps", [["another"], ["key"]])
def test_no_step_cancels_a_run_that_was_not_started_in_it(steps: list[str]) -> None:
    play = Play(FILES, key="key")
    request = Request(id="r", kind="cancel", sender=Sender(way="socket", steps=steps))
    [taken] = requests.take(play.run, play.workspace, request)
    assert isinstance(taken, RequestTaken)
    assert taken.problem.startswith("`cancel` was asked for by a step of")
