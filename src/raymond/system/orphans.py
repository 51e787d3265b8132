"""Processes whose parents have ended: this process becomes their parent, so that none gets out of its line."""

import contextlib
import os
import signal
import time
from collections.abc import Collection
from typing import Any

from raymond.system import ancestry, kin
from raymond.system.processes import GRACE, try_reap

_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER."""


class Orphans:
    """What the processes below this one leave behind, from now on until `let_go`."""

    def __init__(self) -> None:
        self._before = set(_children())
        """They were there before: whoever executed this program started them."""
        self._session = os.getsid(0)
        self._seen = set[int]()
        _adopt(True)

    def reap(self, watched: Collection[int]) -> None:
        """Reap those that have ended; children that are `watched`, or of our own session, are for others to reap."""
        try:
            if os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                return
        except (ChildProcessError, AttributeError):
            return
        for pid in _children():
            if pid not in watched and (pid in self._before or self._is_outside(pid)):
                try_reap(pid)

    def new(self) -> list[int]:
        """The children, orphans or not, that were not there when this was last asked; none that has our session."""
        now = self._outside()
        found = now - self._seen
        self._seen = now
        return sorted(found)

    def below(self) -> set[int]:
        """The children as above, and every process below them."""
        found = self._outside()
        return kin.of(found, sessions=False) if found else found

    def end(self, spare: Collection[int] = ()) -> tuple[int, int]:
        """End all but some, with everything below them; how many were ended, and how many are left, other users'."""
        began, beyond, told = time.monotonic(), set[int](), set[int]()
        while left := self._tree(spare) - beyond:
            for pid in left if time.monotonic() - began > GRACE else left - told:
                if not _send(pid, signal.SIGKILL if pid in told else signal.SIGTERM):
                    beyond.add(pid)
                told.add(pid)
            if time.monotonic() - began > 5 * GRACE:
                beyond |= left
                break
            time.sleep(0.005)
        return len(told - beyond), len(beyond)

    def _tree(self, spare: Collection[int]) -> set[int]:
        """The orphans that have not ended, and every process below them."""
        found = {pid for pid in self._outside() if pid not in spare and not try_reap(pid)[0]}
        return kin.of(found, sessions=False) if found else found

    def _outside(self) -> set[int]:
        """The children that came after us and have a session of their own."""
        return {pid for pid in _children() if pid not in self._before and self._is_outside(pid)}

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
