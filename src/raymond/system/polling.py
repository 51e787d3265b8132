"""Wait for file descriptors. The standard selectors keep books that cost more than a step has to give."""

import os
import select
from collections.abc import Callable

_EPOLL = hasattr(select, "epoll") and "RAYMOND_PORTABLE" not in os.environ


class Poll:
    """Calls whoever is interested in a descriptor that can be read."""

    def __init__(self) -> None:
        self._poll = select.epoll() if _EPOLL else select.poll()
        self._unit = 1.0 if _EPOLL else 1000.0
        self._calls: dict[int, Callable[[int], None]] = {}

    def register(self, fd: int, call: Callable[[int], None]) -> None:
        """Call with `fd` whenever it can be read or has come to its end."""
        self._poll.register(fd, select.POLLIN)
        self._calls[fd] = call

    def unregister(self, fd: int) -> None:
        """Forget `fd`; before it is closed."""
        del self._calls[fd]
        self._poll.unregister(fd)

    def wait(self, seconds: float) -> None:
        """Make the calls that are due, at most `seconds` later."""
        calls = self._calls
        for fd, _ in self._poll.poll(seconds * self._unit):
            call = calls.get(fd)  # one call may have ended the interest of another
            if call:
                call(fd)

    def close(self) -> None:
        """Let go of everything."""
        self._calls.clear()
        if isinstance(self._poll, select.epoll):
            self._poll.close()
