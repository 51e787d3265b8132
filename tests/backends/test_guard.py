"""Whatever a backend returns or raises is a failure of its turn: nothing of it can make a journal unreadable."""

import errno
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from raymond.backends import Backend, Command, Delayed, Direct, Found, Observation, Reply, Spending, Trouble
from raymond.backends.guard import Guarded, GuardedDirect, look, sound
from raymond.machine.failures import REPORTED
from raymond.steps import probe

TURN = probe.turn("hi", cwd="/", session="s")


def fine(**given: Any) -> Reply:
    return Reply(**{"text": "x", "session": "s", **given})


BAD_ENDINGS = {
    "text": "done",
    "none as text": fine(text=None),
    "bytes": fine(text=b"x"),
    "half a character": fine(text="\ud800"),
    "no session": fine(session=None),
    "a number as session": fine(session=7),
    "no cost": fine(spent=None),
    "cost nan": fine(spent=Spending(cost=float("nan"))),
    "cost inf": fine(spent=Spending(cost=float("inf"))),
    "cost text": fine(spent=Spending(cost=cast(Any, "1"))),
    "a class that is ours to report": Trouble(kind="machine", error="e"),
    "an unknown class": Trouble(kind=cast(Any, "wat"), error="e"),
    "a class that is a list": Trouble(kind=cast(Any, ["crash"]), error="e"),
    "no error": Trouble(kind="crash", error=cast(Any, None)),
    "retry nan": Trouble(kind="limit", error="e", retry_at=float("nan")),
    "retry text": Trouble(kind="limit", error="e", retry_at=cast(Any, "soon")),
}


@pytest.mark.parametrize("ending", BAD_ENDINGS.values(), ids=list(BAD_ENDINGS))
def test_an_ending_that_cannot_be_stored_is_a_crash_that_can(ending: object) -> None:
    checked = sound(ending)
    assert isinstance(checked, Trouble)
    assert checked.kind == "crash"
    assert msgspec.json.decode(msgspec.json.encode(checked), type=Trouble) == checked


def test_a_sound_ending_stays_as_it_is() -> None:
    for ending in (fine(), *(Trouble(kind=kind, error="e", retry_at=5.0) for kind in REPORTED)):
        assert sound(ending) is ending


def reading(**reader: Any) -> Guarded:
    """A backend whose reader does what is given."""
    usual: dict[str, Any] = {
        "ending": None,
        "tool": "",
        "feed": lambda line: [],
        "close": lambda *_: fine(),
        "spent": Spending,
    }
    made = SimpleNamespace(**{**usual, **reader})
    return Guarded(cast(Backend, SimpleNamespace(reader=lambda turn: made)), TURN)


@pytest.mark.parametrize("seen", [None, "text", [None], [5], [Observation("tool", cast(Any, None))], 7])
def test_what_is_no_observation_shows_nothing(seen: Any) -> None:
    assert reading(feed=lambda line: seen).feed(b"x") == []


@pytest.mark.parametrize("spent", [None, 5, Spending(cost=float("nan"))])
def test_a_cost_that_makes_no_sense_is_estimated(spent: Any) -> None:
    assert reading(spent=lambda: spent).spent() == TURN.unpriced()


def test_an_ending_is_checked_once_however_often_it_is_asked_for() -> None:
    guarded = reading(ending=fine(text=cast(Any, None)))
    first = guarded.ending
    assert isinstance(first, Trouble)
    assert guarded.ending is first


@pytest.mark.parametrize("command", [None, ["sh"], 5, Command([]), Command(cast(Any, [1]))])
def test_a_backend_that_names_no_command_is_not_set_up(command: Any) -> None:
    made = cast(Backend, SimpleNamespace(reader=lambda turn: None, command=lambda turn: command))
    refused = Guarded(made, TURN).command()
    assert isinstance(refused, Trouble)
    assert refused.kind == "setup"


@pytest.mark.parametrize("found", [None, "here", Found(program=cast(Any, 5))])
def test_a_backend_that_cannot_say_whether_its_program_is_there_has_a_problem(found: Any) -> None:
    assert look(cast(Backend, SimpleNamespace(look=lambda: found))).problem


def test_a_machine_without_room_is_told_apart_from_a_broken_backend() -> None:
    def full() -> Found:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    made = cast(Backend, SimpleNamespace(look=full))
    assert look(made).problem == "this machine cannot start it: resource temporarily unavailable"
    with pytest.raises(BlockingIOError):
        look(made, raising=True)


def raises(*_: object) -> None:
    raise RuntimeError("boom")


@pytest.mark.parametrize(
    "answer", [raises, lambda turn: None, lambda turn: "x", lambda turn: Delayed(delay=float("nan"), ending=fine())]
)
def test_a_backend_that_answers_here_is_guarded_as_well(answer: Any) -> None:
    made = cast(Direct, SimpleNamespace(answer=answer, finish=raises, recall=raises))
    guarded = GuardedDirect(made, TURN)
    ending = guarded.answer().ending
    assert isinstance(ending, Trouble)
    assert ending.kind == "crash"
    assert guarded.recall() is None
    assert guarded.finish(Delayed()) == Trouble(kind="crash", error="its backend is broken: RuntimeError: boom")
