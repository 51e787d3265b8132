"""Processes whose parents have ended: this process becomes their parent, so that none gets out of its line."""

import os
from collections.abc import Callable, Collection

from raymond.system import kin
from raymond.system.processes import GRACE, prctl, start_time, try_reap

_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER."""


class Orphans:
    """What the processes below this one leave behind, from now on until `let_go`."""

    def __init__(self) -> None:
        self._before = {pid: start_time(pid) for pid in kin.children()}
        """They were there before: whoever executed this program started them; with the times when they began."""
        self._session = os.getsid(0)
        self._seen = set[int]()
        prctl(_SUBREAPER, True)

    def reap(self, watched: Collection[int]) -> None:
        """Reap those that have ended; children that are `watched`, or of our own session, are for others to reap."""
        try:
            if os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                return
        except (ChildProcessError, AttributeError):
            return
        for pid in kin.children():
            if pid not in watched and (self._was_before(pid) or self._is_outside(pid)) and try_reap(pid)[0]:
                self._before.pop(pid, None)

    def new(self) -> list[int]:
        """The children, orphans or not, that were not there when this was last asked; none that has our session."""
        now = self._outside()
        found = now - self._seen
        self._seen = now
        return sorted(found)

    def below(self) -> list[int]:
        """The children as above, and every process below them; what was started last comes first."""
        return list(kin.descent(self._outside()))[::-1]

    def end(
        self,
        spare: Collection[int] = (),
        enclose: Callable[[], None] = lambda: None,
        goes_on: Callable[[float], bool] = lambda _: True,
    ) -> tuple[int, int]:
        """End all but some, with everything below them; how many were ended, and how many are left.

        Those that do not end when they are asked to are killed, after `enclose`; `goes_on` is told how long that takes.
        """
        if not any(self._outside().difference(spare) for _ in range(kin.LOOKS)):
            return 0, 0
        from raymond.system.pursuit import Pursuit  # most runs do without

        pursuit = Pursuit(lambda: self._outside().difference(spare), GRACE)
        if not pursuit.ask():
            enclose()
            pursuit.kill(goes_on)
        return pursuit.result

    def _outside(self) -> set[int]:
        """The children that came after us and have a session of their own."""
        return {pid for pid in kin.children() if not self._was_before(pid) and self._is_outside(pid)}

    def _was_before(self, pid: int) -> bool:
        """Whether it is one of those, and not a later process with its number."""
        return pid in self._before and self._before[pid] == start_time(pid)

    def _is_outside(self, pid: int) -> bool:
        try:
            return os.getsid(pid) != self._session
        except OSError:
            return False

    def let_go(self) -> None:
        """Leave orphans to others from now on."""
        prctl(_SUBREAPER, False)
