"""Wait for file descriptors. The standard selectors do bookkeeping that is too slow for every step."""

import os
import select
from collections.abc import Callable

_EPOLL = hasattr(select, "epoll") and "RAYMOND_PORTABLE" not in os.environ


class Poll:
    """Calls back when a descriptor can be read."""

    def __init__(self) -> None:
        self._poll = select.epoll() if _EPOLL else select.poll()
        self._unit = 1.0 if _EPOLL else 1000.0
        self._calls: dict[int, Callable[[int], None]] = {}

    def register(self, fd: int, call: Callable[[int], None]) -> None:
        """Call `call` with `fd` whenever it can be read or is at its end."""
        self._poll.register(fd, select.POLLIN)
        self._calls[fd] = call

    def unregister(self, fd: int) -> None:
        """Forget `fd`; must be called before it is closed."""
        del self._calls[fd]
        self._poll.unregister(fd)

    def wait(self, seconds: float) -> None:
        """Make the calls that are due, at most `seconds` later."""
        calls = self._calls
        for fd, _ in self._poll.poll(seconds * self._unit):
            call = calls.get(fd)  # an earlier call may have unregistered it
            if call:
                call(fd)

    def close(self) -> None:
        """Forget every descriptor and close the poll object."""
        self._calls.clear()
        if isinstance(self._poll, select.epoll):
            self._poll.close()
