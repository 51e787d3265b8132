"""Which run a process drives: whoever holds the lock of a journal, whatever the files around it say."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from raymond.store import lock
from raymond.store.home import Home
from raymond.store.lock import Lock
from raymond.store.run_folder import RunFolder
from raymond.system.locks import LOCKS


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run that nobody drives."""
    folder = RunFolder(Home(str(tmp_path)), f"{tmp_path}/projects/p/runs/r", "r")
    os.makedirs(folder.path)
    Path(folder.journal).write_text('{"format":1,"id":"r"}\n')
    return folder


@pytest.fixture
def held(folder: RunFolder) -> Iterator[Lock]:
    """This process drives it."""
    held = lock.take(folder)
    yield held
    held.release()


def test_whoever_holds_the_lock_drives_the_run(folder: RunFolder, held: Lock) -> None:
    assert lock.driven_by(os.getpid()) == folder
    held.release()
    assert lock.driven_by(os.getpid()) is None


@pytest.mark.parametrize("said", [b'{"pid":1}', b"", b"\0"])
def test_driver_json_hides_nobody(folder: RunFolder, held: Lock, said: bytes) -> None:
    """Every step can write there."""
    Path(folder.driver).write_bytes(said)
    assert lock.driven_by(os.getpid()) == folder


@pytest.mark.parametrize("name", ["journal.jsonl", "other"])
def test_a_journal_that_lies_elsewhere_hides_nobody(folder: RunFolder, held: Lock, tmp_path: Path, name: str) -> None:
    (tmp_path / "away").mkdir()
    os.rename(folder.journal, tmp_path / "away" / name)
    found = lock.driven_by(os.getpid())
    assert found
    assert found.path == f"{tmp_path}/away"


def test_whoever_only_reads_it_does_not(folder: RunFolder) -> None:
    other = os.open(folder.journal, os.O_RDWR)
    with open(folder.journal, "rb"):
        assert lock.driven_by(os.getpid()) is None
        assert LOCKS.take(other)
        assert lock.driven_by(os.getppid()) is None
    os.close(other)


@pytest.mark.parametrize("name", ["database", "journal.jsonl"])
def test_a_lock_of_another_file_is_none_of_a_run(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\0" * 64)
    fd = os.open(tmp_path / name, os.O_RDWR)
    assert LOCKS.take(fd)
    assert lock.driven_by(os.getpid()) is None
    os.close(fd)
