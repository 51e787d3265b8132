"""What the steps of a run have left running, also those that hold its lock and do not drive it.

A step can wait for the lock, kill the driver, and keep everybody out. Nobody who drives a run is one of its leftovers.
"""

import os
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from raymond.machine.events import RunStarted
from raymond.store import lock
from raymond.store.run_folder import RunFolder
from raymond.system import process_tree, processes
from raymond.system.stragglers import Marks, PidFile, end_all

if TYPE_CHECKING:
    from raymond.system.cgroup import Cgroups


class Leftovers:
    """The processes of a run: by their mark, by what its drivers noted, by whom they come from, and by their cgroup."""

    def __init__(self, folder: RunFolder, start: RunStarted) -> None:
        self._folder = folder
        self._marks = Marks(start.key, folder.pids)
        self._noted = PidFile(folder.noted)
        self._known: Cgroups | None = None
        # Steps that may start runs which outlive this one may leave anything: only the mark tells what is ours.
        self._only_marked = start.allow_start or not processes.HAS_PROC

    def note(self, steps: Mapping[int, int]) -> None:
        """Whoever comes when this process is dead has to find these, too, with the steps they are; 0 if not known."""
        if steps and not self._only_marked:
            self._noted.add(steps)

    def enclose(self, below: Callable[[], Collection[int]]) -> None:
        """Let the kernel keep what this process and those `below` it start together, where it can; the first time."""
        if not self._only_marked:
            self._cgroups().enter(self._folder.id, below)

    def leave(self, spare: Collection[int] = ()) -> None:
        """This process starts no more steps; those of `spare` go on."""
        if self._known or self._has_cgroups():
            self._cgroups().leave(spare)

    def find(self, only: Callable[[int], bool] | None = None) -> dict[int, int]:
        """The processes of the steps `only` is true of, or of all, with their steps; 0 for one that is not known."""
        marked = self._marks.find(only)
        if self._only_marked:
            return marked
        noted = {pid: step for pid, step in self._noted.left().items() if only is None or (step and only(step))}
        found = noted | marked
        if only is None and self._has_cgroups():
            found = dict.fromkeys(self._cgroups().left(), 0) | found
        return {pid: found.get(pid, 0) for pid in process_tree.relatives(found)} if found else {}

    def end(self, only: Callable[[int], bool] | None = None) -> dict[int, int]:
        """End them; what was found."""
        found = end_all(lambda: self.find(only), self._still)
        if only is None and not self._noted.left():
            self._noted.forget()
        if only is None and self._has_cgroups():
            self._cgroups().tidy()
        return found

    def end_unknown(self, since: float, spare: Collection[int]) -> None:
        """End what began at `since` or later, and of which only its cgroup tells that it is ours; note the rest.

        What comes from one of `spare` is known.
        """
        if not self._only_marked and self._has_cgroups():
            end_all(lambda: {one: 0 for one in self._unknown(spare) if processes.began_at(one) >= since}, self._still)
            self.note(dict.fromkeys(self._unknown(spare), 0))
            self._cgroups().tidy()

    def _still(self) -> AbstractContextManager[None]:
        return self._cgroups().still() if not self._only_marked and self._has_cgroups() else nullcontext()

    def _unknown(self, spare: Collection[int]) -> set[int]:
        held = self._cgroups().left()
        return held - process_tree.relatives([*spare, *self._noted.left(), *self._marks.find()]) if held else held

    def _has_cgroups(self) -> bool:
        return os.path.exists(self._folder.cgroups)

    def _cgroups(self) -> "Cgroups":
        if not self._known:
            from raymond.system.cgroup import Cgroups  # short runs do without

            self._known = Cgroups(self._folder.cgroups, self._folder.id)
        return self._known


# Those that hold the lock


def end_foreign_holders(folder: RunFolder, start: RunStarted) -> int:
    """End those that steps of the run have left; how many there were. None when somebody else holds the lock, too."""

    def find() -> dict[int, int]:
        holding = lock.holders(folder)
        left = Leftovers(folder, start).find() if holding else {}
        return {pid: left[pid] for pid in holding} if holding <= left.keys() else {}

    return len(end_all(find))
