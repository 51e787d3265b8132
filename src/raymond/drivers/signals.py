"""What Ctrl-C does.

The first Ctrl-C pauses the run: no new step starts, and the driver leaves when the running steps have ended.
A second one stops every step at once, as SIGTERM and SIGHUP do, and what is not finished then runs again on resume.
A signal that was ignored when the driver was started stays ignored, as under nohup; one that was only blocked is heard.
"""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator

from raymond.system.processes import HAS_PIDFD, Poll

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """Catches signals while a run is driven, and acts on them when the driver is ready."""

    def __init__(self, poll: Poll, pause: Callable[[], None], stop: Callable[[int], None]) -> None:
        self.last = 0
        """The signal that was acted on last, for the exit code."""
        self.caught: list[int] = []
        """Signals that were not acted on yet."""
        self._poll = poll
        self._pause = pause
        self._stop = stop

    @property
    def is_urgent(self) -> bool:
        """A second signal was caught, while the first may not have been acted on."""
        return len(self.caught) + bool(self.last) > 1

    def act(self) -> None:
        """Pause or stop, as the caught signals say."""
        while self.caught:
            number = self.caught.pop(0)
            is_first = number == signal.SIGINT and not self.last
            self.last = number
            if is_first:
                self._pause()
            else:
                self._stop(number)

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Catch signals; each one wakes the poll."""
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        os.set_blocking(writer, False)
        self._poll.register(reader, _drain)
        numbers = [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
        if not HAS_PIDFD:
            numbers.append(signal.SIGCHLD)  # wakes the poll, which then looks at the processes
        before = {number: signal.signal(number, self._catch) for number in numbers}
        if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
            # The system would throw exit codes away, and a script that failed would look like one that did not.
            before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        waker = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        blocked = signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            signal.set_wakeup_fd(waker)
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(reader)
            os.close(writer)

    def _catch(self, number: int, _frame: object) -> None:
        if number != signal.SIGCHLD:
            self.caught.append(number)


def _drain(fd: int) -> None:
    with contextlib.suppress(BlockingIOError):
        os.read(fd, 4096)
