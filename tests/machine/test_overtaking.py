"""Which requests that were left for a driver that died come too late, and what the next driver does with the others."""

from typing import Any

import pytest

from builders import Play, asking
from raymond.machine import overtaking
from raymond.machine.conductor import UNSIGNED, Conductor, request_outcomes
from raymond.machine.events import AgentMoved, AgentReturned, Event, LimitsChanged, RequestTaken
from raymond.machine.requests import Request
from raymond.machine.sender import Sender

FILES = {"START.md": "", "A.md": "", "B.md": "", "N.md": ""}
ORDERS: list[dict[str, Any]] = [
    {"kind": "pause"},
    {"kind": "retry"},
    {"kind": "move", "state": "N"},
    {"kind": "result", "text": "x"},
    {"kind": "give_up"},
    {"kind": "answer", "text": "x"},
]


def called() -> Play:
    """Main has failed in a state that another state has called."""
    play = Play(FILES)
    play.say('<function return="N">A</function>')
    play.fail("setup")
    return play


def overtaken(play: Play, left: Request, by: Request) -> list[Event]:
    return overtaking.overtaken(play.run, play.workspace, left, by)


def refused(kind: str, why: str) -> RequestTaken:
    return RequestTaken(request="left", kind=kind, problem=f"too late: {why} first", sender=Sender(way="inbox"))


@pytest.mark.parametrize(
    ("by", "why"),
    [
        (Request(id="by", kind="move", agent="main_a1", state="N"), "main_a1 was moved"),
        (Request(id="by", kind="retry", agent="main_a1"), "main_a1 was retried"),
        (Request(id="by", kind="result", agent="main_a1"), "main_a1 was given a result"),
        (Request(id="by", kind="give_up", agent="main_a1"), "main_a1 was given up"),
        (Request(id="by", kind="answer", agent="main_a1", text="x"), "main_a1 was answered"),
        (Request(id="by", kind="answer", text="x"), "main_a1 was answered"),
        (Request(id="by", kind="pause", agent="main_a1"), "main_a1 was paused"),
        (Request(id="by", kind="stop"), "the run was stopped"),
        (Request(id="by", kind="cancel"), "the run was cancelled"),
    ],
    ids=lambda value: value.kind if isinstance(value, Request) else "",
)
def test_an_order_that_was_left_is_refused_once_something_later_decides_about_its_agent(by: Request, why: str) -> None:
    for order in ORDERS:
        left = Request(id="left", agent="main_a1", sender=Sender(way="inbox"), **order)
        assert overtaken(asking(FILES), left, by) == [refused(order["kind"], why)]


def test_an_answer_to_whoever_asks_is_overtaken_by_what_is_said_about_that_agent() -> None:
    left = Request(id="left", kind="answer", text="x", sender=Sender(way="inbox"))
    by = Request(id="by", kind="move", agent="main_b2", state="N")
    assert overtaken(asking(FILES), left, by) == [refused("answer", "main_b2 was moved")]
    assert overtaken(called(), left, by) == [], "nobody asks"


@pytest.mark.parametrize(
    ("kind", "agent", "by"),
    [
        ("pause", "main_b2", Request(id="by", kind="move", agent="main_a1", state="N")),
        ("move", "main_b2", Request(id="by", kind="pause", agent="main_a1")),
        ("pause", "main_b2", Request(id="by", kind="limits", budget=1.0)),
        ("pause", "main", Request(id="by", kind="answer", text="x")),
        ("pause", "nobody", Request(id="by", kind="answer", text="x")),
        ("cancel", "", Request(id="by", kind="stop")),
        ("stop", "", Request(id="by", kind="move", agent="main_a1", state="N")),
        ("stop", "", Request(id="by", kind="answer", text="x")),
        ("move", "main_a1", Request(id="left", kind="move", agent="main_a1", state="N")),
    ],
)
def test_what_was_left_stays_when_nothing_later_is_about_it(kind: Any, agent: str, by: Request) -> None:
    assert overtaken(asking(FILES), Request(id="left", kind=kind, agent=agent), by) == []


@pytest.mark.parametrize(
    ("left", "by", "why"),
    [
        ("stop", "stop", "the run was stopped"),
        ("stop", "cancel", "the run was cancelled"),
        ("cancel", "cancel", "the run was cancelled"),
    ],
)
def test_a_stop_that_was_left_is_settled_when_it_is_asked_for_again(left: Any, by: Any, why: str) -> None:
    found = overtaken(
        asking(FILES), Request(id="left", kind=left, sender=Sender(way="inbox")), Request(id="by", kind=by)
    )
    assert found == [refused(left, why)]


def limits(id: str = "left", **given: Any) -> Request:
    return Request(id=id, kind="limits", sender=Sender(way="inbox"), **given)


@pytest.mark.parametrize(
    ("left", "by"),
    [
        (limits(budget=100.0), limits("by", budget=1.0, max_turns=3)),
        (limits(max_time=1.0), limits("by", max_time=0.0)),
        (limits(on_ask="fail"), limits("by", on_ask="wait")),
        (limits(allowed_tools=["Bash"], roots=["/a"]), limits("by", allowed_tools=["Edit", "Bash"], roots=["/a"])),
    ],
)
def test_limits_that_were_left_do_not_come_after_those_that_are_set_later(left: Request, by: Request) -> None:
    assert overtaken(asking(FILES), left, by) == [refused("limits", "the limits were changed")]


def test_of_limits_that_were_left_those_hold_that_nobody_has_set_since() -> None:
    left, by = limits(budget=100.0, max_turns=7, allowed_tools=["Bash", "Edit"]), limits("by", budget=1.0)
    taken = RequestTaken(request="left", kind="limits", sender=Sender(way="inbox"))
    assert overtaken(asking(FILES), left, by) == [taken, LimitsChanged(max_turns=7, allowed_tools=["Bash", "Edit"])]


@pytest.mark.parametrize("by", [limits("by", max_turns=3), Request(id="by", kind="stop"), limits("by", roots=["/b"])])
def test_limits_that_were_left_stay_when_nobody_sets_the_same(by: Request) -> None:
    assert overtaken(asking(FILES), limits(budget=100.0, roots=["/a"]), by) == []


# --- what lies there together


def given(play: Play, *left: Request) -> list[Event]:
    conductor = Conductor(play.run, play.workspace)
    conductor.ask_left(left, play.now)
    return [event for decision in conductor.orders().decisions for event in decision.events]


def test_the_same_order_that_was_left_twice_is_obeyed_once() -> None:
    play = called()
    first, again = (Request(id=id, kind="result", agent="main", text=id) for id in ("one", "two"))
    events = given(play, first, again)
    assert [event.result for event in events if isinstance(event, AgentReturned)] == ["two"]
    late = RequestTaken(request="one", kind="result", problem="too late: main was given a result first")
    assert late in events
    assert play.main.state == "N.md", "where it returns to, and no further"


def test_an_order_is_not_lost_because_the_one_after_it_is_refused() -> None:
    here, nowhere = (Request(id=state, kind="move", agent="main", state=state) for state in ("B", "NOWHERE"))
    events = given(called(), here, nowhere)
    assert [event.state for event in events if isinstance(event, AgentMoved)] == ["B.md"]


def test_different_orders_that_were_left_are_obeyed_one_after_the_other() -> None:
    events = given(called(), Request(id="m", kind="move", agent="main", state="B"), limits(budget=3.0))
    assert [event.problem for event in events if isinstance(event, RequestTaken)] == ["", ""]


# --- what the next driver does


def test_a_fate_is_what_the_driver_would_do() -> None:
    left = [
        Request(id="1", kind="move", agent="main", state="B"),
        Request(id="2", kind="move", agent="nobody", state="B"),
        Request(id="3", kind="cancel"),
        Request(id="4", kind="retry", agent="main"),
    ]
    play = called()
    found = request_outcomes(play.run, play.workspace, left, play.now, knows_senders=False)
    assert [one.refusal for one in found] == ["", "there is no agent nobody left in test-1", "", "test-1 was cancelled"]
    assert not any(one.is_put_aside for one in found)


def test_where_senders_are_known_only_what_a_step_may_ask_is_taken_from_the_inbox() -> None:
    play, left = called(), [Request(id="1", kind="cancel"), Request(id="2", kind="stop"), limits(budget=1.0)]
    found = request_outcomes(play.run, play.workspace, left, play.now, knows_senders=True)
    assert [(one.refusal, one.is_put_aside) for one in found] == [(UNSIGNED, True), ("", False), (UNSIGNED, True)]


def test_without_its_workflow_nobody_can_tell_what_is_refused() -> None:
    play, left = called(), [Request(id="1", kind="move", agent="nobody", state="B")]
    assert [one.refusal for one in request_outcomes(play.run, None, left, play.now, knows_senders=False)] == [""]
