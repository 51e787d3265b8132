"""Until when a run was driven: a file that its driver touches, so that its time counts however it ends."""

import contextlib
import os

from raymond.system.files import private


class Beat:
    """The time of a file in the folder of a run."""

    def __init__(self, path: str) -> None:
        self._path = path

    def keep(self) -> None:
        """The run is driven now; nothing depends on this but the limit of its time."""
        with contextlib.suppress(OSError):
            fd = private(self._path, os.O_WRONLY | os.O_CREAT)
            os.utime(fd)
            os.close(fd)

    def after(self, time: float, now: float) -> float:
        """For how many seconds after `time` the run was still driven, up to `now`."""
        try:
            last = os.lstat(self._path).st_mtime
        except OSError:
            return 0.0
        return round(max(0.0, min(last, now) - time), 3)
