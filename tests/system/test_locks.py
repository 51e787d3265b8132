"""Both kinds of lock on an open file: one holder, seen by others, gone with its process."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from raymond.system import locks
from raymond.system.locks import FileLocks, Locks, OpenFileLocks

HOLD = """
import os, sys
from raymond.system import locks

fd = os.open(sys.argv[2], os.O_RDWR)
assert getattr(locks, sys.argv[1])().take(fd)
print("held", flush=True)
sys.stdin.read()
"""


class Opened:
    """A file that is opened several times, each time as if by another process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fds: list[int] = []
        path.write_text("content")

    def again(self, flags: int = os.O_RDWR) -> int:
        self._fds.append(os.open(self.path, flags | os.O_CLOEXEC))
        return self._fds[-1]

    def close(self) -> None:
        for fd in self._fds:
            os.close(fd)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    opened = Opened(tmp_path / "file")
    yield opened
    opened.close()


@pytest.fixture(params=[OpenFileLocks, FileLocks])
def kind(request: pytest.FixtureRequest) -> Locks:
    if request.param is OpenFileLocks and not sys.platform.startswith("linux"):
        pytest.skip("only Linux has them")
    made: Locks = request.param()
    return made


def test_a_lock_has_one_holder(kind: Locks, opened: Opened) -> None:
    first, second = opened.again(), opened.again()
    assert kind.take(first)
    assert not kind.take(second)
    assert kind.take(first), "its holder may ask again"
    kind.release(first)
    assert kind.take(second)


def test_others_see_that_it_is_held_and_its_holder_does_not_stand_in_its_own_way(kind: Locks, opened: Opened) -> None:
    holder, looking = opened.again(), opened.again(os.O_RDONLY)
    assert not kind.is_taken(looking)
    assert kind.take(holder)
    assert kind.is_taken(looking)
    kind.release(holder)
    assert not kind.is_taken(looking)


def test_a_look_at_a_free_lock_leaves_it_free(kind: Locks, opened: Opened) -> None:
    looking, other = opened.again(os.O_RDONLY), opened.again()
    assert not kind.is_taken(looking)
    assert kind.take(other)


def test_a_released_lock_is_free_although_a_child_has_a_copy_of_the_descriptor(kind: Locks, opened: Opened) -> None:
    holder, other = opened.again(), opened.again()
    copy = os.dup(holder)
    try:
        assert kind.take(holder)
        kind.release(holder)
        assert kind.take(other)
    finally:
        os.close(copy)


def test_it_does_not_end_when_the_same_process_closes_another_descriptor(kind: Locks, opened: Opened) -> None:
    """As the usual locks of fcntl would: reading the journal would be enough to lose it."""
    holder, other = opened.again(), opened.again()
    assert kind.take(holder)
    opened.path.read_text()
    assert not kind.take(other)


def test_it_does_not_end_when_the_file_grows_and_covers_what_is_added(kind: Locks, opened: Opened) -> None:
    holder, other = opened.again(), opened.again()
    assert kind.take(holder)
    os.truncate(opened.path, 1 << 20)
    assert kind.is_taken(other)


def test_it_ends_with_the_process_that_holds_it(kind: Locks, opened: Opened) -> None:
    looking = opened.again()
    argv = [sys.executable, "-c", HOLD, type(kind).__name__, str(opened.path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        assert kind.is_taken(looking)
        assert not kind.take(looking)
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        assert not kind.is_taken(looking)
        assert kind.take(looking)


def test_what_is_no_file_is_an_error_and_not_a_lock_that_somebody_holds(kind: Locks, opened: Opened) -> None:
    closed = opened.again()
    os.close(closed)
    opened._fds.remove(closed)
    with pytest.raises(OSError, match="Bad file descriptor"):
        kind.take(closed)
    with pytest.raises(OSError, match="Bad file descriptor"):
        kind.is_taken(closed)


def test_linux_has_locks_that_can_be_looked_at_without_being_taken() -> None:
    expected = OpenFileLocks if sys.platform.startswith("linux") else FileLocks
    assert type(locks.LOCKS) is expected
