"""Processes whose parents have ended: this process becomes their parent, so that none gets out of its line."""

import contextlib
import os
import signal
import time
from collections.abc import Collection
from typing import Any

from raymond.system import kin
from raymond.system.processes import GRACE, try_reap

_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER."""
_LOOKS = 5
"""How often none must be seen: the kernel may pass over a child while others end."""


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
        return _with_those_below(self._outside())

    def end(self, spare: Collection[int] = ()) -> tuple[int, int]:
        """End all but some, with everything below them; how many were ended, and how many are left, other users'."""
        began, beyond, told, quiet = time.monotonic(), set[int](), set[int](), 0
        # What has ended counts as seen: it may have started something in its place after we looked.
        while quiet < _LOOKS:
            found = self._outside().difference(spare, beyond)
            quiet = 0 if found else quiet + 1
            left = {pid for pid in found if not try_reap(pid)[0]}
            late = time.monotonic() - began
            if late > 5 * GRACE:
                beyond |= left
                break
            # Whoever lost its parent is one of `left` at the next look: to search for it now would only take time,
            # in which one that keeps starting itself anew is elsewhere.
            tell = left if late > GRACE else _with_those_below(left) - told
            beyond |= {pid for pid in tell if not _send(pid, signal.SIGKILL if late > GRACE else signal.SIGTERM)}
            if left and (late <= GRACE or tell <= told):
                time.sleep(0.005)
            told |= tell
        return len(told - beyond), len(beyond)

    def _outside(self) -> set[int]:
        """The children that came after us and have a session of their own."""
        return {pid for pid in _children() if pid not in self._before and self._is_outside(pid)}

    def _is_outside(self, pid: int) -> bool:
        try:
            return os.getsid(pid) != self._session
        except OSError:
            return False

    def let_go(self) -> None:
        """Leave orphans to others from now on."""
        _adopt(False)


def _with_those_below(pids: set[int]) -> set[int]:
    return kin.of(pids, sessions=False) if pids else pids


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
