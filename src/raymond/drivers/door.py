"""The door of a driver: a socket at which others ask something of its run.

A request is one line of JSON, and so is the reply. The kernel says which process is at the other end: what a request
says of its sender does not count.
"""

import contextlib
import os
import time
from collections.abc import Callable
from socket import socket

import msgspec
from msgspec import Struct

from raymond import errors
from raymond.language.refusal import Refusal
from raymond.machine.requests import Request
from raymond.store.inbox import MOST_BYTES, decode
from raymond.store.run_folder import JOURNAL
from raymond.system import locks, sockets
from raymond.system.processes import Poll, alive, start_time

_AT_ONCE = 32
"""Connections; more have to wait until one is closed."""
_PATIENCE = 10.0
"""Seconds that a connection may stay open without a whole request."""


class Reply(Struct, frozen=True, omit_defaults=True):
    """What became of a request: the driver has it in its journal, or refused it."""

    problem: Refusal | None = None


class Door:
    """Takes requests; whoever asked is answered when the request is in the journal."""

    def __init__(self, path: str, poll: Poll, heard: Callable[[Request, int], None]) -> None:
        """`heard` gets a request and the process that made it; 0 when that process is gone."""
        self._path = path
        self._poll = poll
        self._heard = heard
        self._server: socket | None = None
        self._guests: dict[int, _Guest] = {}
        """Open connections, by descriptor."""
        self._is_crowded = False
        """Nobody is let in before the next look, because there is no descriptor for them."""
        self.problem: OSError | None = None
        """Why it could not be opened the last time, although there are sockets here."""

    def open(self) -> bool:
        """Whether requests can be taken, and their senders known."""
        if self._server is None:
            self.problem = None
            try:
                self._server = sockets.listen(self._path)
                sockets.peer(self._server)
                self._poll.register(self._server.fileno(), self._greet)
            except OSError as error:
                self._shut()
                self.problem = None if sockets.are_unknown(error) else error
                return False
        return True

    @property
    def is_open(self) -> bool:
        """Whether somebody can come in."""
        return self._server is not None

    def reply(self, request: str, problem: Refusal | None) -> None:
        """Tell whoever waits for `request` what became of it."""
        for fd, guest in list(self._guests.items()):
            if guest.waits_for == request:
                with contextlib.suppress(OSError):
                    guest.connection.sendall(msgspec.json.encode(Reply(problem)) + b"\n")
                self._dismiss(fd)

    def close(self) -> None:
        """Take no more requests."""
        for fd in list(self._guests):
            self._dismiss(fd)
        if self._server is not None:
            if not self._is_crowded:
                self._poll.unregister(self._server.fileno())
            self._shut()

    def _shut(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
            with contextlib.suppress(OSError):
                os.unlink(self._path)

    def _greet(self, _: int) -> None:
        assert self._server is not None
        self.dismiss_idle()
        try:
            connection, _ = self._server.accept()
        except OSError as error:
            if errors.is_passing_fault(error):
                # Whoever waits there would wake us again and again.
                self._is_crowded = True
                self._poll.unregister(self._server.fileno())
            return  # else it has left already
        try:
            pid, uid = sockets.peer(connection)
        except OSError:
            connection.close()
            return
        if uid not in (os.geteuid(), 0):
            connection.close()
            return
        if len(self._guests) >= _AT_ONCE:
            # Whoever has said nothing for longest makes room.
            self._dismiss(
                next((fd for fd, guest in self._guests.items() if not guest.waits_for), next(iter(self._guests)))
            )
        connection.setblocking(False)
        self._guests[connection.fileno()] = _Guest(connection, pid)
        self._poll.register(connection.fileno(), self._listen)

    def _listen(self, fd: int) -> None:
        guest = self._guests[fd]
        try:
            data = guest.connection.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        guest.said += data
        if not data or guest.waits_for or len(guest.said) > MOST_BYTES:
            return self._dismiss(fd)
        if not guest.said.endswith(b"\n"):
            return
        request = decode(guest.said)
        if request is None:
            return self._dismiss(fd)
        guest.waits_for = request.id
        self._heard(request, guest.pid if guest.is_there() else 0)

    def dismiss_idle(self) -> None:
        """Show out those who say nothing; those who had to wait outside may come in."""
        if self._is_crowded and self._server:
            self._is_crowded = False
            self._poll.register(self._server.fileno(), self._greet)
        before = time.monotonic() - _PATIENCE
        for fd, guest in list(self._guests.items()):
            if guest.came < before and not guest.waits_for:
                self._dismiss(fd)

    def _dismiss(self, fd: int) -> None:
        guest = self._guests.pop(fd)
        self._poll.unregister(fd)
        guest.connection.close()


class _Guest:
    """A process at the door."""

    def __init__(self, connection: socket, pid: int) -> None:
        self.connection = connection
        self.pid = pid
        self.came = time.monotonic()
        self._began = start_time(pid)
        self.said = b""
        self.waits_for = ""
        """The request it made; empty until it was heard."""

    def is_there(self) -> bool:
        """Whether the process that knocked is still the one with that number, and not gone."""
        return alive(self.pid, self._began)


def ask(path: str, request: Request, within: float) -> Reply | None:
    """Ask the driver whose door is at `path`; None when it has the request and has not answered in time.

    OSError: nobody is at the door, or somebody who does not drive the run, or says what is no reply.
    """
    until = time.monotonic() + within
    with contextlib.closing(sockets.connect(path, within)) as connection:
        # By the kernel: any step can sign as the driver.
        if not locks.holds(sockets.peer(connection)[0], os.stat(f"{os.path.dirname(path)}/{JOURNAL}")):
            raise PermissionError(f"{path} was opened by a process that does not drive the run")
        connection.sendall(msgspec.json.encode(request) + b"\n")
        said = b""
        with contextlib.suppress(TimeoutError):
            while not said.endswith(b"\n"):
                said += _hear(connection, until)
                if len(said) > MOST_BYTES:
                    raise ConnectionAbortedError(f"{path} says more than any reply")
            return _reply(said)
    return None


def _hear(connection: socket, until: float) -> bytes:
    """What was said next; TimeoutError when nothing is by then."""
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    connection.settimeout(left)
    data = connection.recv(1 << 16)
    if not data:
        raise ConnectionResetError("the door was closed")
    return data


def _reply(said: bytes) -> Reply:
    """A driver could be stopped, and another process that got hold of its descriptors speak."""
    try:
        return msgspec.json.decode(said, type=Reply)
    except (ValueError, RecursionError):  # ValueError: also text that is not UTF-8
        raise ConnectionAbortedError("what was said at the door is no reply") from None
