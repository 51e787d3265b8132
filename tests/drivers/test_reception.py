"""Where a driver takes requests, and how others find out."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from builders import Play
from raymond.drivers.face import Quiet
from raymond.drivers.reception import Reception
from raymond.errors import JournalError
from raymond.machine.conductor import Conductor
from raymond.machine.requests import Request
from raymond.redaction import Secrets
from raymond.store import inbox
from raymond.store.home import Home
from raymond.store.run_folder import RunFolder
from raymond.system.polling import Poll


class Desk:
    """A reception, and the note that tells others where it is, which a full disk keeps from being written."""

    def __init__(self, path: Path) -> None:
        play, folder = Play({"START.md": ""}), RunFolder(Home(str(path)), str(path), "r")
        self.socket, self.is_full = folder.socket, True
        self.noted: list[str] = []
        self.poll = Poll()
        conductor = Conductor(play.run, play.workspace)
        self.reception = Reception(
            folder, conductor, Quiet(), self.poll, lambda: play.now, self._announce, Secrets.of({})
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


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.reception.close()
    made.poll.close()


def test_a_place_that_could_not_be_announced_is_announced_as_soon_as_there_is_room(desk: Desk) -> None:
    desk.look()
    desk.look()
    assert desk.noted == []
    desk.is_full = False
    desk.look()
    desk.look()
    assert desk.noted == [desk.socket]
