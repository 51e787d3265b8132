"""Processes whose parents have ended: this process becomes their parent, so that none gets out of its line."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Collection
from typing import Any

from raymond.system import ancestry
from raymond.system.processes import GRACE, try_reap

_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER."""


class Orphans:
    """What the processes below this one leave behind, from now on until `let_go`."""

    def __init__(self) -> None:
        self._before = set(_children())
        """They were there before: whoever executed this program started them."""
        self._session = os.getsid(0)
        _adopt(True)

    def reap(self, watched: Collection[int]) -> None:
        """Reap those that have ended; children that are `watched`, or of our own session, are for others to reap."""
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except (ChildProcessError, AttributeError):
                return
            if ended is None or ended.si_pid in watched or not self._is_outside(ended.si_pid):
                return
            try_reap(ended.si_pid)

    def end(self, is_spared: Callable[[int], bool]) -> None:
        """End all of them, and what they leave behind in turn; those of other users cannot be ended."""
        began, told = time.monotonic(), set[tuple[int, int]]()
        beyond = set[int]()
        while left := [pid for pid in _children() if self._is_one(pid) and pid not in beyond and not is_spared(pid)]:
            lasted = time.monotonic() - began
            if lasted > 2 * GRACE:
                return
            number = signal.SIGTERM if lasted < GRACE else signal.SIGKILL
            for pid in left:
                if (pid, number) not in told:
                    told.add((pid, number))
                    if not _send(pid, number):
                        beyond.add(pid)
                try_reap(pid)
            time.sleep(0.005)

    def _is_one(self, pid: int) -> bool:
        return pid not in self._before and self._is_outside(pid)

    def _is_outside(self, pid: int) -> bool:
        found = ancestry.look(pid)
        return found is not None and found.session != self._session

    def let_go(self) -> None:
        """Leave orphans to others from now on."""
        _adopt(False)


def _send(pid: int, number: int) -> bool:
    """Send a signal; False when we may not."""
    try:
        os.kill(pid, number)
    except PermissionError:
        return False
    except ProcessLookupError:
        pass
    return True


def _children() -> list[int]:
    """The children of this process; none where the kernel does not say."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    return found


def _adopt(adopt: bool) -> None:
    with contextlib.suppress(ImportError, AttributeError, OSError):
        # The module ctypes itself takes ten times as long to import, and a run begins in a tenth of a second.
        import _ctypes

        itself: Any = None
        prctl = _ctypes.dlsym(_ctypes.dlopen(itself, 0), "prctl")
        _ctypes.call_function(prctl, (_SUBREAPER, int(adopt), 0, 0, 0))
