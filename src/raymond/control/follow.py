"""Watch a run that another process drives: its journal as it grows. The driver does not notice."""

import os
import time
from collections.abc import Iterator
from math import inf

from raymond.errors import JournalError, RunNotFound
from raymond.machine.events import Decision
from raymond.machine.run import Run
from raymond.store import journal, lock
from raymond.store.project import Project
from raymond.views.status import run_status

EVERY = 0.2
"""Seconds between two looks at a journal that grows."""


class Follower:
    """A run as its journal tells it, up to the last look."""

    def __init__(self, project: Project, id: str) -> None:
        self.run = Run()
        self._folder = project.run(id)
        self._offset = 0

    def look(self) -> list[Decision]:
        """The decisions since the last look; they are applied to `run`."""
        try:
            return self._look()
        except (OSError, JournalError):
            if os.path.exists(self._folder.journal) or not self.run.begun:
                raise
        raise RunNotFound(f"run {self._folder.id} was removed meanwhile", path=self._folder.journal)

    def _look(self) -> list[Decision]:
        size = os.stat(self._folder.journal).st_size
        if size <= self._offset and self.run.begun:
            return []  # when it is smaller, a torn end was cut off: what follows will be longer
        if not self.run.begun:
            journal.first(self._folder)  # or why it cannot be read: a run never appears without its beginning
        decisions, self._offset = journal.tail(self._folder, self._offset, self.run)
        return decisions

    @property
    def pid(self) -> int:
        """The process that drives the run; 0 when none does."""
        holder = lock.holder(self._folder)
        return holder.pid or -1 if holder else 0

    def rest(self, timeout: float | None = None) -> bool:
        """Wait until nobody drives the run; whether that came before `timeout` seconds were over."""
        until = inf if timeout is None else time.monotonic() + timeout
        for _ in self.watch():
            if time.monotonic() >= until:
                return not self.pid
        return True

    def watch(self, every: float = EVERY) -> Iterator[list[Decision]]:
        """New decisions, until nobody drives the run and no more can come; an empty list when there are none."""
        while True:
            driven = self.pid
            # Look after checking the lock, so that what was written before its release is seen.
            yield self.look()
            if not driven and not self._about_to_begin():
                return
            time.sleep(every)

    def _about_to_begin(self) -> bool:
        """A run that was just begun has a journal before it has a driver."""
        return self.run.seq <= 1 and run_status(self.run) == "running" and time.time() - self.run.now < 2.0
