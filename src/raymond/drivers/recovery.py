"""After a restart: what becomes of the steps that the driver before us had started."""

import os
import time
from collections.abc import Callable, Iterable

from raymond import durations
from raymond.machine.events import Program
from raymond.machine.inputs import Ending, Interruption
from raymond.machine.run import Run, is_lost
from raymond.steps.step import Step
from raymond.store.leftovers import Leftovers

Look = Callable[[str], tuple[Program, str]]
"""Backend -> its program as it is now, and why it cannot be used."""
_REST = 10.0
"""A program that cannot be used is left alone for this many times as long as the look took: everything else waits."""


def adopt(steps: Iterable[Step], *, restart: bool) -> list[Step]:
    """The steps that still run; the others have reported how they ended. With `restart`, no step is left running."""
    return [step for step in steps if step.adopt(restart=restart)]


def clear(run: Run, endings: Iterable[tuple[Step, Ending]], adopted: Iterable[Step], left: Leftovers) -> None:
    """Leave nothing running of steps that were cut off, or that the journal has lost: they run again.

    What finished steps left running stays for those that follow.
    """
    cut = [step for step, ending in endings if isinstance(ending, Interruption)]
    numbers = {step.number for step in cut}
    left.end(lambda step: step in numbers or is_lost(run, step))
    # What the driver had no time to note was new when it died: most likely one of these has started it, unless it is
    # older than they are.
    since = min((run.agents[step.agent].visit.since for step in cut), default=float("inf"))
    left.end_unknown(since, [step.pid for step in adopted])


def remove_twins(seals: str) -> None:
    """Remove what checks that were cut off have left."""
    if os.path.exists(seals):
        from raymond.verifier import twin  # hardly any run needs it

        twin.remove_left(seals)


def notes(run: Run, now: float) -> list[str]:
    """What a person who resumes the run should know: the backends it has to wait for."""
    if run.stop:
        return []
    return [
        f"{backend} is unavailable for {durations.brief(closed.until - now)}: {' '.join(closed.error.splitlines())}"
        for backend, closed in run.closed.items()
        if closed.until > now
    ]


# Look at the program of a backend that nobody has named before its first turn, as a start does


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
