"""Processes that hold the lock of a run and do not drive it.

A step can wait for the lock, kill the driver, and keep everybody out. Nobody who drives a run is one of its leftovers.
"""

from raymond.machine.events import RunStarted
from raymond.store import lock
from raymond.store.leftovers import Leftovers
from raymond.store.run_folder import RunFolder
from raymond.system.stragglers import end_all


def end(folder: RunFolder, start: RunStarted) -> int:
    """End those that steps of the run have left; how many there were. None when somebody else holds the lock, too."""

    def find() -> dict[int, int]:
        holding = lock.holders(folder)
        left = Leftovers(folder, start).find() if holding else {}
        return {pid: left[pid] for pid in holding} if holding <= left.keys() else {}

    return len(end_all(find))
