"""The lock of a run: its journal is held by one process, which driver.json only names."""

import contextlib
import errno
import fcntl
import os
import resource
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from raymond.errors import JournalError, RunBusy, RunNotFound
from raymond.store import lock
from raymond.store.home import Home
from raymond.store.lock import ForeignHolder, Holder
from raymond.store.run_folder import RunFolder
from raymond.system import sockets
from raymond.system.locks import LOCKS
from raymond.system.processes import start_time

STATUS = "`raymond stop r` stops it; `raymond status r` shows what it does"
UNKNOWN = "try again in a moment; if it drives the run, `raymond stop r` stops it"


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run that nobody drives."""
    folder = RunFolder(Home(str(tmp_path)), f"{tmp_path}/r", "r")
    os.mkdir(folder.path)
    Path(folder.journal).write_text("the truth\n")
    return folder


def signed(folder: RunFolder) -> Holder:
    return msgspec.json.decode(Path(folder.driver).read_bytes(), type=Holder)


def sign(folder: RunFolder, holder: Holder) -> None:
    Path(folder.driver).write_bytes(msgspec.json.encode(holder))


def refused(folder: RunFolder, *, force: bool = False) -> tuple[str, str]:
    with pytest.raises(RunBusy) as caught:
        lock.take(folder, force=force)
    return str(caught.value), caught.value.hint


def held_by(pid: int) -> tuple[str, str]:
    """What is said of one that has signed and takes no requests."""
    return f"process {pid} holds the lock of r", f"try again in a moment; if it hangs: kill {pid}"


def test_whoever_holds_it_is_named_until_it_is_released(folder: RunFolder) -> None:
    assert lock.holder(folder) is None
    held = lock.take(folder)
    us = Holder(os.getpid(), os.uname().nodename, start_time(os.getpid()))
    assert lock.holder(folder) == signed(folder) == us
    held.release()
    assert lock.holder(folder) is None
    assert os.listdir(folder.path) == ["journal.jsonl"]
    held.release()


def test_a_pipe_in_the_place_of_the_journal_is_not_waited_for(folder: RunFolder) -> None:
    os.unlink(folder.journal)
    os.mkfifo(folder.journal)
    assert lock.holder(folder) is None


def test_what_it_holds_is_the_journal_open_for_reading_and_appending(folder: RunFolder) -> None:
    held = lock.take(folder)
    os.write(held.fd, b"more\n")
    assert os.pread(held.fd, 100, 0) == Path(folder.journal).read_bytes() == b"the truth\nmore\n"
    held.release()


def test_a_second_holder_is_refused_with_the_pid_of_the_first(folder: RunFolder) -> None:
    held = lock.take(folder)
    assert refused(folder) == held_by(os.getpid())
    assert refused(folder, force=True) == held_by(os.getpid())
    held.release()
    lock.take(folder).release()


def test_one_that_takes_requests_is_called_a_driver(folder: RunFolder) -> None:
    held = lock.take(folder)
    held.sign(folder.socket)
    assert refused(folder) == (f"process {os.getpid()} drives r", STATUS)
    held.release()


@pytest.mark.parametrize("content", [None, b"", b"{torn", b"\0\0\0", b"[]"])
def test_who_holds_it_is_not_decided_by_what_driver_json_says(folder: RunFolder, content: bytes | None) -> None:
    """Whoever removes or changes that file lets nobody else in."""
    held = lock.take(folder)
    os.unlink(folder.driver)
    if content is not None:
        Path(folder.driver).write_bytes(content)
    assert lock.holder(folder) == Holder()
    assert refused(folder) == ("an unknown process holds the lock of r", UNKNOWN)
    held.release()


def test_one_that_is_held_for_a_moment_without_a_name_is_waited_for(folder: RunFolder) -> None:
    """Somebody only looks at it, where that means to take it, or has not signed yet."""
    looking = os.open(folder.journal, os.O_RDWR)
    assert LOCKS.take(looking)
    freed = threading.Timer(0.05, os.close, (looking,))
    freed.start()
    lock.take(folder).release()
    freed.join()


def test_the_name_that_a_killed_holder_left_does_not_stand_in_the_way(folder: RunFolder) -> None:
    sign(folder, Holder(os.getpid(), os.uname().nodename, "another start"))
    assert lock.holder(folder) is None
    held = lock.take(folder)
    assert signed(folder).started == start_time(os.getpid())
    held.release()


def test_one_that_another_host_did_not_release_is_refused_until_forced(folder: RunFolder) -> None:
    sign(folder, Holder(4242, "elsewhere", "1"))
    before = signed(folder)
    assert refused(folder) == (
        "process 4242 on elsewhere locked r and did not release it",
        "make sure that it is gone from elsewhere, then use --force",
    )
    assert signed(folder) == before
    held = lock.take(folder, force=True)
    assert signed(folder).pid == os.getpid()
    held.release()


def test_a_name_of_another_host_that_was_overruled_returns_if_nothing_was_done(folder: RunFolder) -> None:
    sign(folder, Holder(4242, "elsewhere", "1"))
    before = signed(folder)
    lock.take(folder, force=True).release()
    assert signed(folder) == before
    held = lock.take(folder, force=True)
    os.write(held.fd, b"more\n")
    held.release()
    assert os.listdir(folder.path) == ["journal.jsonl"]


def test_one_that_is_held_without_a_name_leaves_that_of_others(folder: RunFolder) -> None:
    sign(folder, Holder(4242, "elsewhere", "1"))
    before = signed(folder)
    held = lock.take(folder, force=True, sign=False)
    assert signed(folder) == before
    with pytest.raises(RunBusy):
        lock.take(folder)
    held.release()
    assert signed(folder) == before


def test_a_command_without_force_says_what_to_do_instead(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    sign(folder, Holder(4242, "elsewhere", "1"))
    with pytest.raises(RunBusy) as caught:
        lock.take(folder, has_flag=False)
    assert caught.value.hint == f"make sure that it is gone from elsewhere, then remove {folder.driver}"
    monkeypatch.setattr(fcntl, "fcntl", none)
    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.raises(JournalError) as locked:
        lock.take(folder, has_flag=False)
    assert locked.value.hint == f"copy {folder.home.path} to one that can, and name it with RAYMOND_HOME"


def test_a_journal_that_is_replaced_by_its_holder_stays_held(folder: RunFolder) -> None:
    held = lock.take(folder)
    aside = f"{folder.journal}.new"
    new = os.open(aside, os.O_RDWR | os.O_CREAT, 0o600)
    held.replace(new, lambda: os.replace(aside, folder.journal))
    assert refused(folder) == held_by(os.getpid())
    assert os.path.samestat(os.fstat(held.fd), os.stat(folder.journal))
    held.release()
    lock.take(folder).release()


def test_whoever_waited_for_a_journal_that_was_replaced_takes_the_new_one(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock of a file that has lost its name protects nothing."""
    fcntl_call = fcntl.fcntl
    calls: list[int] = []

    def replaced(fd: int, what: int, how: bytes) -> bytes:
        if not calls:
            Path(f"{folder.journal}.new").write_text("another\n")
            os.replace(f"{folder.journal}.new", folder.journal)
        calls.append(what)
        return fcntl_call(fd, what, how)

    monkeypatch.setattr(fcntl, "fcntl", replaced)
    held = lock.take(folder)
    assert os.path.samestat(os.fstat(held.fd), os.stat(folder.journal))
    assert os.pread(held.fd, 100, 0) == b"another\n"
    held.release()


def test_a_lock_follows_the_folder_of_its_run(folder: RunFolder, tmp_path: Path) -> None:
    held = lock.take(folder)
    moved = RunFolder(folder.home, f"{tmp_path}/moved", "r")
    os.rename(folder.path, moved.path)
    held.follow(moved)
    assert refused(moved) == held_by(os.getpid())
    held.release()
    assert os.listdir(moved.path) == ["journal.jsonl"]


def test_a_journal_that_is_missing_is_no_run_to_resume(folder: RunFolder) -> None:
    os.unlink(folder.journal)
    with pytest.raises(JournalError) as caught:
        lock.take(folder)
    assert str(caught.value) == f"{folder.journal}: no such file or directory"
    assert caught.value.hint == "`raymond list` shows the runs that are there"
    assert lock.holder(folder) is None
    assert os.listdir(folder.path) == [], "no lock makes a journal"


def test_of_a_run_that_was_removed_it_is_said_that_there_is_none(folder: RunFolder) -> None:
    shutil.rmtree(folder.path)
    with pytest.raises(RunNotFound) as caught:
        lock.take(folder)
    assert str(caught.value) == "run `r` no longer exists"
    assert caught.value.hint == "`raymond list` shows the runs that are there"


def test_a_link_in_place_of_the_journal_is_not_held(folder: RunFolder, tmp_path: Path) -> None:
    os.rename(folder.journal, tmp_path / "outside")
    os.symlink(tmp_path / "outside", folder.journal)
    with pytest.raises(JournalError) as caught:
        lock.take(folder)
    assert str(caught.value) == f"{folder.journal}: too many levels of symbolic links"
    assert lock.holder(folder) is None


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """No file may have a byte: the nearest thing to a full disk that needs no disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_one_that_cannot_be_signed_is_let_go(folder: RunFolder) -> None:
    with full_disk(), pytest.raises(JournalError) as caught:
        lock.take(folder)
    assert str(caught.value) == f"{folder.driver}: file too large"
    lock.take(folder).release()


def test_one_that_is_held_for_a_moment_needs_no_room_for_a_name(folder: RunFolder) -> None:
    with full_disk():
        held = lock.take(folder, brief=True)
    assert os.listdir(folder.path) == ["journal.jsonl"]
    assert refused(folder) == ("an unknown process holds the lock of r", UNKNOWN), "it is a lock all the same"
    held.release()
    lock.take(folder).release()


def test_one_without_a_name_leaves_that_of_another_host(folder: RunFolder) -> None:
    sign(folder, Holder(4242, "elsewhere", "1"))
    before = signed(folder)
    with full_disk():
        held = lock.take(folder, force=True, brief=True)
    os.write(held.fd, b"more\n")
    held.release()
    assert signed(folder) == before


def test_a_file_system_without_locks_needs_the_name(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else would keep two commands apart."""

    def none(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "fcntl", none)
    monkeypatch.setattr(fcntl, "flock", none)
    with full_disk(), pytest.raises(JournalError) as caught:
        lock.take(folder, force=True, brief=True)
    assert str(caught.value) == f"{folder.driver}: file too large"


@pytest.mark.parametrize("brief", [False, True])
def test_a_folder_in_the_place_of_the_name_is_moved_aside_whatever_is_in_it(folder: RunFolder, brief: bool) -> None:
    os.makedirs(f"{folder.driver}/deep/er")
    held = lock.take(folder, brief=brief)
    assert signed(folder).pid == os.getpid()
    (aside,) = Path(folder.path).glob("driver.json.*.aside")
    assert (aside / "deep" / "er").is_dir()
    os.unlink(folder.driver)
    os.mkdir(folder.driver)
    held.sign(folder.socket)
    assert signed(folder).socket == folder.socket
    held.release()


def test_a_link_or_a_pipe_in_the_place_of_the_name_is_replaced(folder: RunFolder, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    os.symlink(outside, folder.driver)
    lock.take(folder).release()
    os.mkfifo(folder.driver)
    lock.take(folder).release()
    assert (os.listdir(outside), os.listdir(folder.path)) == ([], ["journal.jsonl"])


def test_a_file_system_without_locks_is_said_and_can_be_overruled(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "fcntl", none)
    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.raises(JournalError) as caught:
        lock.take(folder)
    assert str(caught.value) == f"this file system cannot lock {folder.journal}: no locks available"
    assert caught.value.hint == "make sure that no other process drives r, then use --force"
    held = lock.take(folder, force=True)
    assert signed(folder).pid == os.getpid()
    assert lock.holder(folder) is None, "nobody can be seen"
    held.release()


def test_who_holds_it_after_the_one_that_signed_has_died_is_named(folder: RunFolder) -> None:
    sign(folder, Holder(os.getpid(), os.uname().nodename, "another start"))
    fd = os.open(folder.journal, os.O_RDWR)
    assert LOCKS.take(fd)
    found = lock.holder(folder)
    assert isinstance(found, ForeignHolder)
    assert (found.pid, lock.holders(folder)) == (os.getpid(), {os.getpid()})
    told, hint = refused(folder)
    assert told == f"process {os.getpid()} ({found.command}) holds the lock of r and does not drive it"
    assert hint == f"`raymond stop r --now` ends it if a step left it running; if not: kill {os.getpid()}"
    os.close(fd)
    assert (lock.holder(folder), lock.holders(folder)) == (None, set())


def test_a_driver_whose_name_was_written_over_is_known_by_its_door(folder: RunFolder) -> None:
    """Any step can do that; it must still be reached."""
    held = lock.take(folder)
    sign(folder, Holder(1, os.uname().nodename, "another start", folder.socket))
    with contextlib.closing(sockets.listen(folder.socket)):
        us = Holder(os.getpid(), os.uname().nodename, start_time(os.getpid()), folder.socket)
        assert lock.holder(folder) == us
        assert refused(folder) == (f"process {os.getpid()} drives r", STATUS)
    held.release()
