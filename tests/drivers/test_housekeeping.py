"""The state file in the project: written when it shows something new, not too often, and never in the way of a run."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders import Play
from raymond.drivers.face import Quiet
from raymond.drivers.housekeeping import EXPORT_EVERY, Export
from raymond.errors import JournalError
from raymond.machine.run import Run
from raymond.store import exports
from running import Room

FILES = {"START.md": "", "A.md": ""}
ASKS = {
    "START.sh": """echo '<ask next="END">Which one?</ask>'""",
    "END.sh": 'echo "<result>$RAYMOND_INPUT</result>"',
}


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path)
    yield room
    room.clear()


class Notes(Quiet):
    """A face that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def on_note(self, text: str) -> None:
        self.told.append(text)


def kept(export: Export, run: Run) -> None:
    """Five seconds later, the journal has grown."""
    export.next = 0.0
    export.keep(run, lambda: b"described")


def test_it_is_written_when_the_status_or_a_question_has_changed() -> None:
    written: list[bytes | bytearray] = []
    export, play = Export(written.append, Quiet()), Play(FILES)
    kept(export, play.run)
    assert len(written) == 1, "at the start"
    play.say("<goto>A</goto>")
    kept(export, play.run)
    assert len(written) == 1, "a step changes neither"
    play.say('<ask next="A">why?</ask>')
    kept(export, play.run)
    kept(export, play.run)
    assert len(written) == 2
    play.ask("answer", text="so")
    play.say('<ask next="A">and then?</ask>')
    kept(export, play.run)
    assert len(written) == 3, "another question"


def test_it_is_not_looked_at_again_for_some_seconds() -> None:
    written: list[bytes | bytearray] = []
    export, play = Export(written.append, Quiet()), Play(FILES)
    export.keep(play.run, lambda: b"one")
    until = export.next
    play.say('<ask next="A">why?</ask>')
    export.keep(play.run, lambda: b"two")
    assert (written, export.next) == ([b"one"], until)
    assert EXPORT_EVERY == 5.0


def test_what_cannot_be_written_is_told_once_and_tried_again() -> None:
    tried: list[bytes | bytearray] = []

    def put(text: bytes | bytearray) -> None:
        tried.append(text)
        raise JournalError("there is a link", path="/p")

    face = Notes()
    export = Export(put, face)
    export.write(b"one")
    export.write(b"two")
    assert face.told == ["the state file in the project was not written: there is a link"]
    assert tried == [b"one", b"two"]


@pytest.mark.slow
def test_it_says_what_the_state_file_says_and_nothing_of_the_journal(room: Room) -> None:
    assert room.command(ASKS).code == 3
    export = Path(exports.state_file(room.project.tree, "r"))
    shown, state = json.loads(export.read_text()), json.loads(Path(room.project.run("r").state).read_text())
    assert state.pop("journal_bytes") == Path(room.project.run("r").journal).stat().st_size
    assert shown == state
    assert shown["status"] == "waiting"
    assert "Which one?" in export.read_text()
    room.raymond("answer", "r", "this", "--no-resume")
    assert room.resume().code == 0
    assert json.loads(export.read_text())["status"] == "completed"


@pytest.mark.slow
def test_it_is_there_while_the_run_goes_on(room: Room) -> None:
    """Written at the start, not only at the end: a script of the run waits for it."""
    waits = "while [ ! -e .raymond/workflows/r.json ]; do sleep 0.02; done"
    assert room.command({"START.sh": f"{waits}; echo '<result>seen</result>'"}).out == "seen\n"
