"""The end of processes that may not want to end: they are asked, then stopped as a whole and killed."""

import os
import signal
import time
from collections.abc import Callable

from raymond.system import kin
from raymond.system.kin import LOOKS
from raymond.system.processes import try_reap

_MOST = 4096
"""Processes that are stopped before they are killed: others may start more all the time."""


class Pursuit:
    """Ends the children of this process that `find` gives, and everything below them."""

    def __init__(self, find: Callable[[], set[int]], grace: float) -> None:
        self._find = find
        self._grace = grace
        """Seconds that one gets to end when it is asked to."""
        self._told = set[int]()
        self._beyond = set[int]()
        """Other users', which we may not end."""

    @property
    def result(self) -> tuple[int, int]:
        """How many were ended, and how many are left."""
        left = set(kin.descent(pid for pid in self._find() if not try_reap(pid)[0]))
        return len(self._told - left), len(left)

    def ask(self) -> bool:
        """Ask all to end, and wait for that a while; whether none is left, also none that was started meanwhile."""
        until, quiet = time.monotonic() + self._grace, 0
        # What has ended counts as seen: it may have started something in its place after we looked.
        while quiet < LOOKS:
            found = self._find() - self._beyond
            quiet = 0 if found else quiet + 1
            left = {pid for pid in found if not try_reap(pid)[0]}
            if left and time.monotonic() > until:
                return False
            new = kin.of(left, sessions=False) - self._told if left else left
            self._send(new, signal.SIGTERM)
            if left:
                time.sleep(0.005)
        return True

    def kill(self, goes_on: Callable[[float], bool]) -> None:
        """Kill all, for as long as new ones are seen, and some time more if one does not go away.

        `goes_on` is asked all the time, with the seconds that it has taken so far.
        """
        began = moved = time.monotonic()
        quiet, before = 0, set[int]()
        while quiet < LOOKS and goes_on(time.monotonic() - began):
            held = self._hold()
            self._send(held, signal.SIGKILL)
            is_new, before = not held <= before, held
            left = {pid for pid in self._find() - self._beyond if not try_reap(pid)[0]}
            quiet = 0 if is_new or left else quiet + 1
            if is_new:
                moved = time.monotonic()
            elif left and time.monotonic() > moved + 5 * self._grace:
                break
            elif left:
                time.sleep(0.001)

    def _hold(self) -> set[int]:
        """Stop all, each before we look for what it has started: the kernel lets it start no more from then on.

        To kill them on the way would take longer: only when one has ended, what it has started becomes our child.
        """
        held = set[int]()
        while len(held) < _MOST and (new := self._find() - self._beyond - held):
            for pid in kin.descent(new):
                held.add(pid)
                self._send({pid}, signal.SIGSTOP)
                if len(held) == _MOST:
                    break
        return held - self._beyond

    def _send(self, pids: set[int], number: int) -> None:
        self._beyond |= {pid for pid in pids if not _send(pid, number)}
        self._told |= pids


def _send(pid: int, number: int) -> bool:
    """Send a signal; False when we may not. SIGKILL also takes what the process has just started in its group."""
    try:
        os.kill(pid, number)
        if number == signal.SIGKILL:
            os.killpg(pid, number)
    except PermissionError:
        return False
    except ProcessLookupError:
        pass
    return True
