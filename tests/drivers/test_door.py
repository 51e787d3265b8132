"""The door of a driver: what comes in, who sent it, and what nonsense does not do."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import pytest

from raymond.drivers import door
from raymond.drivers.door import Door
from raymond.language.refusal import Refusal
from raymond.machine.requests import Request
from raymond.store.run_folder import JOURNAL
from raymond.system import sockets
from raymond.system.locks import LOCKS
from raymond.system.processes import Poll

STOP = Request(id="one", kind="stop")


class Open:
    """An open door, and what was heard at it."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.lock = os.open(path.parent / JOURNAL, os.O_RDWR | os.O_CREAT, 0o600)
        assert LOCKS.take(self.lock)
        self.heard: list[tuple[Request, int]] = []
        self.poll = Poll()
        self.door = Door(self.path, self.poll, lambda request, pid: self.heard.append((request, pid)))
        assert self.door.open()

    def hear(self, count: int) -> None:
        """Go on until so many requests were heard."""
        while len(self.heard) < count:
            self.poll.wait(0.1)


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Open]:
    made = Open(tmp_path / "socket")
    yield made
    made.door.close()
    made.poll.close()
    os.close(made.lock)


def asking(path: str, request: Request, replies: list[door.Reply | None]) -> threading.Thread:
    """Somebody who asks and waits for the reply."""
    thread = threading.Thread(target=lambda: replies.append(door.ask(path, request, 60)))
    thread.start()
    return thread


@pytest.mark.parametrize("problem", [None, Refusal("from_step", "no", "go away")])
def test_who_asks_hears_what_became_of_it(there: Open, problem: Refusal | None) -> None:
    replies: list[door.Reply | None] = []
    thread = asking(there.path, STOP, replies)
    there.hear(1)
    there.door.reply("other", None)
    there.door.reply("one", problem)
    thread.join()
    assert there.heard == [(STOP, os.getpid())]
    assert replies == [door.Reply(problem)]


def test_who_is_not_answered_in_time_is_told_that_it_waits(there: Open) -> None:
    assert door.ask(there.path, STOP, 0.05) is None
    there.hear(1)


def test_nobody_at_the_door_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="o such file"):
        door.ask(str(tmp_path / "socket"), STOP, 60)
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(tmp_path / "socket"))
    left.close()
    with pytest.raises(ConnectionRefusedError):
        door.ask(str(tmp_path / "socket"), STOP, 60)


IMPOSTOR = """
import fcntl, os, socket, sys
os.chdir(sys.argv[1])
os.path.exists("socket") and os.unlink("socket")
journal = open("journal.jsonl", "r+")
fcntl.flock(journal, fcntl.LOCK_EX)
open("driver.json", "w").write('{"pid":%d}' % os.getpid())
door = socket.socket(socket.AF_UNIX)
door.bind("socket")
door.listen()
print(flush=True)
while True:
    guest = door.accept()[0]
    try:
        guest.recv(65536) and guest.sendall(b"{}\\n")
    except OSError:
        pass
"""
"""Takes the place of a door, signs as the driver, and says yes to everything."""


def test_who_does_not_drive_the_run_is_not_believed(there: Open) -> None:
    arguments = [sys.executable, "-Sc", IMPOSTOR, os.path.dirname(there.path)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as impostor:
        assert impostor.stdout
        impostor.stdout.readline()
        try:
            with pytest.raises(PermissionError, match="does not drive the run"):
                door.ask(there.path, STOP, 60)
        finally:
            impostor.kill()


def says(path: str, parts: Iterable[bytes]) -> threading.Thread:
    """Somebody who holds the lock, is at the door instead, and says this to the first who comes."""
    os.unlink(path)
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()

    def speak() -> None:
        guest = server.accept()[0]
        with contextlib.suppress(OSError):
            guest.recv(1 << 16)
            for part in parts:
                guest.sendall(part)
        guest.close()
        server.close()

    thread = threading.Thread(target=speak)
    thread.start()
    return thread


def drip() -> Iterator[bytes]:
    """Something, again and again, for two seconds."""
    for _ in range(200):
        yield b" "
        time.sleep(0.01)


@pytest.mark.parametrize(
    "said", [b"\xff[[[[\n", b'{"problem":' + b"[" * 100_000 + b"\n", b"[]\n", b" " * (1 << 20) + b"{}\n"]
)
def test_what_is_no_reply_is_an_error(there: Open, said: bytes) -> None:
    thread = says(there.path, [said])
    with pytest.raises(ConnectionAbortedError):
        door.ask(there.path, STOP, 60)
    thread.join()


def test_a_reply_that_never_ends_is_not_waited_for(there: Open) -> None:
    thread = says(there.path, drip())
    assert door.ask(there.path, STOP, 0.1) is None
    thread.join()


def test_a_socket_that_a_dead_driver_left_is_replaced(tmp_path: Path) -> None:
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(tmp_path / "socket"))
    left.close()
    made = Open(tmp_path / "socket")
    assert (tmp_path / "socket").stat().st_mode & 0o777 == 0o600
    made.door.close()
    assert not (tmp_path / "socket").exists()


def test_without_a_place_for_a_socket_there_is_no_door_until_there_is_one(tmp_path: Path) -> None:
    made = Door(str(tmp_path / "none" / "socket"), Poll(), lambda *_: None)
    assert (made.open(), isinstance(made.problem, FileNotFoundError)) == (False, True)
    (tmp_path / "none").mkdir()
    assert (made.open(), made.problem) == (True, None)
    made.close()


def test_what_is_in_the_way_of_the_door_is_put_aside(tmp_path: Path) -> None:
    (tmp_path / "socket" / "x").mkdir(parents=True)
    made = Open(tmp_path / "socket")
    made.door.close()
    [aside] = tmp_path.glob("socket.*.aside")
    assert [*aside.iterdir()] == [aside / "x"]


@pytest.mark.skipif(os.geteuid() != 0, reason="nothing is closed to root, and only root can act as somebody else")
def test_a_folder_that_was_closed_is_opened_for_the_door() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/socket")
        os.chown(folder, 65534, 65534)
        os.chmod(folder, 0o500)
        os.seteuid(65534)
        try:
            made = Door(f"{folder}/socket", Poll(), lambda *_: None)
            assert made.open(), made.problem
            made.close()
        finally:
            os.seteuid(0)


def test_where_the_kernel_does_not_tell_who_asks_there_is_no_door(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(socket, "SO_PEERCRED")
    made = Door(str(tmp_path / "socket"), Poll(), lambda request, pid: None)
    assert (made.open(), made.is_open, made.problem, os.listdir(tmp_path)) == (False, False, None, [])


def test_a_path_longer_than_any_address_is_reached(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 100) / ("y" * 100)
    folder.mkdir(parents=True)
    made = Open(folder / "socket")
    assert len(made.path) > sockets.LONGEST
    replies: list[door.Reply | None] = []
    thread = asking(made.path, STOP, replies)
    made.hear(1)
    made.door.reply("one", None)
    thread.join()
    assert replies == [door.Reply()]
    made.door.close()


@pytest.mark.parametrize(
    "said",
    [
        b"\n",
        b"{}\n",
        b"\xff\n",
        b'{"id":"x","kind":"dance"}\n',
        b"x" * (3 << 20),
        msgspec.json.encode(STOP) * 2 + b"\n",
    ],
)
def test_nonsense_is_shown_out_and_the_next_one_is_heard(there: Open, said: bytes) -> None:
    guest = sockets.connect(there.path, 60)

    def say() -> None:
        try:
            guest.sendall(said)
        except OSError:
            pass  # shown out before it was done

    thread = threading.Thread(target=say)
    thread.start()
    closed = threading.Event()

    def listen() -> None:
        try:
            assert guest.recv(1) == b""
        except ConnectionResetError:
            pass
        closed.set()

    other = threading.Thread(target=listen)
    other.start()
    while not closed.is_set():
        there.poll.wait(0.05)
    thread.join()
    other.join()
    guest.close()
    assert there.heard == []
    door.ask(there.path, STOP, 0.01)
    there.hear(1)


def test_many_who_say_nothing_do_not_keep_others_out_for_long(there: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "_PATIENCE", 0.0)
    silent = []
    for _ in range(50):
        silent.append(sockets.connect(there.path, 60))
        there.poll.wait(0.05)
    door.ask(there.path, STOP, 0.01)
    there.hear(1)
    for one in silent:
        one.close()
