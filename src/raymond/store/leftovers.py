"""What the steps of a run have left running."""

from collections.abc import Callable, Mapping

from raymond.machine.events import RunStarted
from raymond.store.run_folder import RunFolder
from raymond.system import kin, processes
from raymond.system.marks import Marks, end_all
from raymond.system.noted import Noted


class Leftovers:
    """The processes of a run, by their mark, by what its driver noted, and by whom they come from."""

    def __init__(self, folder: RunFolder, start: RunStarted) -> None:
        self._marks = Marks(start.key, folder.pids)
        self._noted = Noted(folder.noted)
        # Steps that may start runs which outlive this one may leave anything: only the mark tells what is ours.
        self._only_marked = start.allow_start or not processes.HAS_PROC

    def note(self, steps: Mapping[int, int]) -> None:
        """Whoever comes when this process is dead has to find these, too, with the steps they are; 0 if not known."""
        if steps and not self._only_marked:
            self._noted.add(steps)

    def find(self, only: Callable[[int], bool] | None = None) -> dict[int, int]:
        """The processes of the steps `only` is true of, or of all, with their steps; 0 for one that is not known."""
        marked = self._marks.find(only)
        if self._only_marked:
            return marked
        noted = {pid: step for pid, step in self._noted.left().items() if only is None or (step and only(step))}
        found = noted | marked
        return {pid: found.get(pid, 0) for pid in kin.of(found)} if found else {}

    def end(self, only: Callable[[int], bool] | None = None) -> dict[int, int]:
        """End them; what was found."""
        found = end_all(lambda: self.find(only))
        if only is None and not self._noted.left():
            self._noted.forget()
        return found
