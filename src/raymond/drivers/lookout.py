"""Look at the program of a backend that nobody has named before its first turn, as a start does."""

import time
from collections.abc import Callable

from raymond.machine.events import Program

Look = Callable[[str], tuple[Program, str]]
"""Backend -> its program as it is now, and why it cannot be used."""
_REST = 10.0
"""A program that cannot be used is left alone for this many times as long as the look took: everything else waits."""


class Lookout:
    """Finds the programs that answer from now on, and remembers which cannot be used."""

    def __init__(self, look: Look, clock: Callable[[], float] = time.monotonic) -> None:
        self._look = look
        self._clock = clock
        self._again: dict[str, float] = {}
        """When a program that cannot be used is looked at again: somebody may have installed it."""
        self.unusable: dict[str, str] = {}
        """Backends whose program cannot be used, and why."""

    def find(self, name: str) -> Program | None:
        """The program of a backend; None when it cannot be used."""
        began = self._clock()
        if began < self._again.get(name, 0.0):
            return None
        program, problem = self._look(name)
        if not problem:
            self.unusable.pop(name, None)
            return program
        self.unusable[name] = problem
        ended = self._clock()
        self._again[name] = ended + _REST * (ended - began)
        return None
