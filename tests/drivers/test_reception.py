"""Where a driver takes requests, and how others find out."""

import contextlib
import os
import resource
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders import Play
from raymond.drivers.face import Quiet
from raymond.drivers.reception import Reception
from raymond.errors import JournalError
from raymond.machine.conductor import Conductor
from raymond.machine.events import AskEnded, Decision, RequestTaken
from raymond.machine.requests import Request
from raymond.redaction import Secrets
from raymond.store import inbox
from raymond.store.home import Home
from raymond.store.run_folder import RunFolder
from raymond.system import sockets
from raymond.system.processes import Poll


class Typed(Quiet):
    """A face at which somebody types."""

    def __init__(self) -> None:
        self.typed: list[tuple[str, str]] = []
        self.notes: list[str] = []

    def answers(self) -> list[tuple[str, str]]:
        typed, self.typed = self.typed, []
        return typed

    def on_note(self, text: str) -> None:
        self.notes.append(text)


class Desk:
    """A reception, and the note that tells others where it is, which a full disk keeps from being written."""

    def __init__(self, path: Path) -> None:
        self.play = play = Play({"START.md": ""})
        folder = RunFolder(Home(str(path)), str(path), "r")
        self.socket, self.is_full = folder.socket, True
        self.inbox = Path(folder.inbox)
        self.noted: list[str] = []
        self.poll = Poll()
        self.face = Typed()
        self.conductor = Conductor(play.run, play.workspace)
        self.reception = Reception(
            folder, self.conductor, self.face, self.poll, lambda: play.now, self._announce, Secrets.of({})
        )
        inbox.leave(folder.inbox, Request(id="one", kind="answer"))  # for the first one, the door is opened at once

    def _announce(self, where: str) -> None:
        if self.is_full:
            raise JournalError("driver.json: no space left on device", path="driver.json")
        self.noted.append(where)

    def look(self) -> None:
        """A second later."""
        self.reception.next_look = 0.0
        self.reception.look()

    def close(self) -> None:
        """Leave nothing open."""
        self.reception.close()
        self.poll.close()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.close()


@contextlib.contextmanager
def one_descriptor() -> Iterator[None]:
    """No more than one file can be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.open(os.devnull, os.O_RDONLY)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, hard))
    os.close(free)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_place_that_could_not_be_announced_is_announced_as_soon_as_there_is_room(desk: Desk) -> None:
    desk.look()
    desk.look()
    assert desk.noted == []
    desk.is_full = False
    desk.look()
    desk.look()
    assert desk.noted == [desk.socket]


def test_a_door_that_cannot_be_opened_is_tried_again_and_nobody_else_is_believed(tmp_path: Path) -> None:
    desk = Desk(tmp_path / ("x" * sockets.LONGEST))  # takes one more descriptor to be opened
    desk.is_full = False
    with one_descriptor():
        desk.look()
    assert ([*desk.inbox.iterdir()], desk.noted) == ([desk.inbox / "one.json.refused"], [])
    assert desk.face.notes[0].startswith(f"only `stop` and `pause` are taken until that works: {desk.socket} cannot be")
    desk.look()
    assert desk.noted == [desk.socket]
    desk.close()


def test_no_request_that_came_before_takes_the_place_of_an_answer_that_is_typed(desk: Desk) -> None:
    desk.play.begin()
    desk.play.say('<ask next="START">Which?</ask>')
    for number in range(50, 150):
        desk.conductor.take(Request(id=f"typed-{number}", kind="resume"), desk.play.now)
    desk.conductor.orders()
    desk.face.typed = [("main", "blue")]
    desk.reception.listen()
    decided = [event for one in desk.conductor.orders().decisions for event in one.events]
    assert [event.answer for event in decided if isinstance(event, AskEnded)] == ["blue"]


def test_nothing_in_the_inbox_ends_the_driver(desk: Desk) -> None:
    for name in ("a" * 250, "\x1b[2J", "\udcff", "plain", "taken"):
        (desk.inbox / f"{name}.json").write_text("x")
    (desk.inbox / "taken.json.broken" / "full").mkdir(parents=True)
    desk.look()
    assert [*desk.inbox.glob("*.json")] == []
    assert (desk.inbox / "plain.json.broken").read_text() == "x"
    told = "".join(desk.face.notes)
    assert (told.count("cannot be read"), "a" * 17 in told, told.isprintable()) == (5, False, True)


def test_a_file_in_place_of_the_inbox_does_not_end_the_driver(desk: Desk) -> None:
    desk.inbox.rename(desk.inbox.with_name("away"))
    desk.inbox.write_text("x")
    desk.look()


def test_what_became_of_requests_is_not_kept_for_ever(desk: Desk) -> None:
    def refuse(numbers: range) -> int:
        """So many refusals, and the memory taken after them."""
        for number in numbers:
            event = RequestTaken(request=f"q{number}", kind="pause", problem=f"{number:01000}")
            desk.reception.done([event.request], [Decision(seq=1, time=1.0, events=[event])])
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    before = refuse(range(1500))
    after = refuse(range(1500, 3000))
    tracemalloc.stop()
    assert after - before < 500_000


@pytest.mark.parametrize("is_over", [True, False])
def test_what_is_asked_of_a_run_that_is_over_is_kept_for_nobody(desk: Desk, is_over: bool) -> None:
    desk.look()
    inbox.leave(str(desk.inbox), Request(id="late", kind="stop"))
    desk.conductor.run.final_status = "completed" if is_over else ""
    desk.reception.close()
    assert [*desk.inbox.glob("*.json")] == ([] if is_over else [desk.inbox / "late.json"])
