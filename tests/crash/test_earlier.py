"""Runs that earlier commits left unfinished are taken up and brought to their end."""

import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.record import JOURNALS
from raymond.machine.events import StepStarted
from raymond.store import blobs
from running import Ran, Room

LEFT = sorted((JOURNALS / "unfinished").glob("*.tar.gz"))
pytestmark = pytest.mark.slow


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path, RAYMOND_HOME=str(tmp_path / "state"))
    yield room
    room.clear()


def put(room: Room, left: Path) -> None:
    """What was left, in another place; a run that was kept in its project is adopted."""
    with tarfile.open(left) as kept:
        kept.extractall(room.path.parent, filter="data")
    for path in room.path.parent.rglob("*"):
        path.chmod(0o700)
    if not room.home.exists():
        (room.path.parent / "shop" / ".raymond").rename(room.path / ".raymond")
        adopted = room.raymond("adopt", "r", "--yes")
        assert adopted.returncode == 0, adopted.stderr
    (room.path / "resumed").touch()


def finish(room: Room) -> Ran:
    """Take the run up here, answer what it asks, and take it up again."""
    asks = room.resume("--cd", ".", "--force")
    assert asks.code == 3, asks.err
    for agent in ("main_ask1", "main_talk2", "main_caller3"):
        answered = room.raymond("answer", "r", agent, f"yes, {agent}", "--no-resume")
        assert answered.returncode == 0, answered.stderr
    return room.resume()


@pytest.mark.parametrize("left", LEFT, ids=lambda path: path.name.partition(".")[0])
def test_a_run_of_an_earlier_commit_is_resumed_to_its_end(left: Path, room: Room) -> None:
    put(room, left)
    done = finish(room)
    assert (done.code, done.out) == (0, "all of it\n"), done.err
    whole = blobs.whole(room.project.run("r").blobs)
    assert {name: whole(outcome) for name, outcome in done.run.outcomes.items()} == {
        "main": "all of it",
        "main_ask1": "asked yes, main_ask1",
        "main_talk2": "talked",
        "main_caller3": "back with inner yes, main_caller3",
        "main_long4": "long" * 5000,
        "main_late5": "late",
        "main_work6": "worked",
    }
    started = Counter(event.agent for event in done.all(StepStarted))
    twice = {"main_late5", "main_work6"}
    assert started == {"main": 2, "main_ask1": 2, "main_talk2": 2, "main_caller3": 4, "main_long4": 1} | dict.fromkeys(
        twice, 2
    ), "only what was cut off runs again"
    assert done.run.cost == 0.75, "what was paid before counts"
    first, second = (event for event in done.all(StepStarted) if event.agent == "main_talk2")
    assert second.base == first.session, "the conversation goes on"
    room.nothing_runs()
