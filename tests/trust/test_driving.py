"""One process drives a run, whatever happens to the files around its journal; without its journal nobody does."""

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from running import GO, Live, until
from trust.places import Place, clear_away, no_traceback

HELD = {
    "START.sh": f"echo START >> ../ledger; {GO}; echo '<goto>TWO.sh</goto>'",
    "TWO.sh": "echo TWO >> ../ledger; echo '<result>done</result>'",
}
PARTS = ["driver.json", "state.json", "snapshot", "source.zip", "inbox", "blobs", "log"]


@pytest.fixture
def live(room: Place) -> Iterator[Live]:
    """A run in its first step."""
    with room.start("run", room.flow(HELD), "--id", "r") as live:
        room.noted(live, "START")
        yield live


def nobody_else_drives(room: Place) -> None:
    before = room.journal().read_bytes()
    for args in (("resume", "r"), ("resume", "r", "--force"), ("clean", "r")):
        done = room.raymond(*args)
        assert done.returncode in (1, 2), (args, no_traceback(done))
    assert "drives" in room.raymond("resume", "r").stderr
    assert room.journal().read_bytes() == before
    assert room.ledger() == ["START"]


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTS)
def test_no_file_lets_another_process_drive_when_it_is_gone(room: Place, live: Live, name: str) -> None:
    clear_away(room.part(name))
    nobody_else_drives(room)
    room.go()
    done = live.wait()
    assert (done.code, done.out) == (0, "done\n"), done.err


@pytest.mark.slow
def test_nothing_beside_the_journal_lets_another_process_drive_when_it_is_gone(room: Place, live: Live) -> None:
    for path in room.folder().iterdir():
        if path.name not in ("journal.jsonl", "r.jsonl"):
            clear_away(path)
    nobody_else_drives(room)


@pytest.mark.slow
def test_a_driver_that_is_not_named_is_still_seen(room: Place, live: Live) -> None:
    clear_away(room.part("driver.json"))
    assert [row["driven"] for row in room.rows()] == [True]
    assert room.raymond("status", "r").returncode == 0
    stopped = room.raymond("stop", "r", "--now")
    assert stopped.returncode == 0, stopped.stderr
    assert live.wait().code == 3


@pytest.mark.slow
def test_a_driver_whose_name_a_step_has_changed_is_still_reached(room: Place, live: Live) -> None:
    until(room.part("socket").exists, "the socket")
    driver = room.part("driver.json")
    driver.write_text(re.sub(r'"pid":\d+', '"pid":1', driver.read_text()))
    assert f"running in process {live.pid}" in room.raymond("status", "r").stdout
    nobody_else_drives(room)
    stopped = room.raymond("stop", "r", "--now")
    assert (stopped.returncode, stopped.stderr) == (0, f"r received the request (process {live.pid})\n")
    assert live.wait().code == 3


# --- the journal itself


def removed(path: Path) -> None:
    path.unlink()


def replaced(path: Path) -> None:
    shutil.copy(path, path.with_name("copy"))
    os.rename(path.with_name("copy"), path)


def folder_removed(path: Path) -> None:
    def is_gone() -> bool:
        with contextlib.suppress(OSError):  # whoever drives the run may write into it meanwhile
            clear_away(path.parent)
        return not path.parent.exists()

    until(is_gone, "the end of the folder")


def folder_moved(path: Path) -> None:
    # Whoever drives the run writes files aside meanwhile, which are gone by the time they are copied.
    shutil.copytree(path.parent, path.parent.with_name("copy"), ignore=shutil.ignore_patterns("*.tmp"))
    path.parent.rename(path.parent.with_name("away"))


@pytest.mark.parametrize("harm", [removed, replaced, folder_removed, folder_moved])
def test_a_driver_that_loses_its_journal_stops(room: Place, live: Live, harm: Callable[[Path], None]) -> None:
    """Nothing follows from what nobody can read afterwards."""
    journal = room.journal()
    before = journal.read_bytes()
    harm(journal)
    room.go()
    done = live.wait()
    assert done.code == 1, done.err
    assert str(journal) in done.err
    assert "Traceback" not in done.err
    assert room.ledger() == ["START"], "nothing was started after it"
    for path in room.home.rglob("*.jsonl"):
        if path.name in ("journal.jsonl", "r.jsonl"):
            assert path.read_bytes() == before, "nothing was written to it"
    room.nothing_runs()


def test_a_run_whose_journal_was_replaced_goes_on_from_the_new_one(room: Place, live: Live) -> None:
    replaced(room.journal())
    room.go()
    assert live.wait().code == 1
    done = room.resume()
    assert (done.code, done.out) == (0, "done\n"), done.err
    assert room.ledger() == ["START", "START", "TWO"]


def test_a_journal_that_somebody_else_wrote_to_stops_its_driver(room: Place, live: Live) -> None:
    """Its size is not what the driver left: there are two of them, or it was edited."""
    with room.journal().open("ab") as file:
        file.write(b"something\n")
    room.go()
    done = live.wait()
    assert done.code == 1, done.err
    assert str(room.journal()) in done.err
    assert room.ledger() == ["START"]
