"""What the steps of a run have left running."""

from collections.abc import Callable

from raymond.machine.events import RunStarted
from raymond.store.run_folder import RunFolder
from raymond.system import kin, processes
from raymond.system.marks import Marks, end_all


class Leftovers:
    """The processes of a run, by their mark and by whom they come from."""

    def __init__(self, folder: RunFolder, start: RunStarted) -> None:
        self._marks = Marks(start.key, folder.pids)
        # Steps that may start runs which outlive this one may leave anything: only the mark tells what is ours.
        self._only_marked = start.allow_start or not processes.HAS_PROC

    def find(self, only: Callable[[int], bool] | None = None) -> dict[int, int]:
        """The processes of the steps `only` is true of, or of all, with their steps; 0 for one that is not known."""
        found = self._marks.find(only)
        if self._only_marked or not found:
            return found
        return {pid: found.get(pid, 0) for pid in kin.of(found)}

    def end(self, only: Callable[[int], bool] | None = None) -> dict[int, int]:
        """End them; what was found."""
        return end_all(lambda: self.find(only))
