"""Take the lock of a run to continue it, although a command may hold it for a moment to write something down."""

import os
from collections.abc import Callable
from time import sleep

from raymond.control import inside
from raymond.errors import RunBusy
from raymond.store import journal, lock
from raymond.store.lock import Lock
from raymond.store.run_folder import RunFolder

PATIENCE = (0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0)
"""Seconds between tries when a person waits."""
LONGER = (*PATIENCE, *[1.0] * 7)
"""The same when nobody does: the run would be left as it is."""
_UNTOLD = 3
"""Tries after which whoever waits is told why."""


def take(
    folder: RunFolder,
    force: bool = False,
    tell: Callable[[str], None] | None = None,
    *,
    patience: tuple[float, ...] = PATIENCE,
    pause: Callable[[float], None] = sleep,
) -> Lock:
    """The lock of the run, once no command holds it; a driver is not waited for, it continues the run itself."""
    for number, seconds in enumerate(patience):
        try:
            return _take(folder, force)
        except RunBusy as busy:
            if busy.drives or not busy.pid or busy.host not in ("", os.uname().nodename):
                raise  # nobody knows how long that takes: a command signs, and is done in a moment
            if number == _UNTOLD and tell:
                tell(f"waiting: {busy}")
        pause(seconds)
    return _take(folder, force)


def _take(folder: RunFolder, force: bool) -> Lock:
    """The lock of the run; what is left of its steps does not keep it from whoever may resume the run."""
    try:
        return lock.take(folder, force=force)
    except RunBusy:
        from raymond.store import squatters

        start = journal.first(folder)
        inside.check(start, "resume")
        if not squatters.end(folder, start):
            raise
    return lock.take(folder, force=force)
