"""What a driver does beside driving: sync the journal, keep its snapshot and the state file, refresh the face."""

import time

from raymond.drivers.face import Face
from raymond.errors import JournalError
from raymond.machine.run import Run
from raymond.store.journal import Journal
from raymond.system.files import replace
from raymond.views import documents

SYNC_WITHIN = 0.1
SHOW_WITHIN = 0.05
"""Seconds within which what was decided is shown, all of it at once."""
STATE_EVERY = 1.0
"""Seconds between two writes of the state file while decisions keep coming."""
FAR = float("inf")


class Upkeep:
    """Each thing when it is time, and not before."""

    def __init__(self, journal: Journal, state_file: str, face: Face, *, strict: bool) -> None:
        self.must_sync = strict
        """The next write has to be on the disk before anything follows from it."""
        self._journal = journal
        self._state_file = state_file
        self._face = face
        self._strict = strict
        self._sync_at = FAR
        self._quiet_since = time.monotonic()
        self._state_written_at = 0
        self._state_size = 0
        self._state_due = 0.0
        self._shown_at = 0.0
        self._show_at = FAR

    def write(self) -> None:
        """Nothing follows from a decision before this."""
        if not self._journal.write():
            return
        now = time.monotonic()
        if self.must_sync:
            self._journal.sync()
            self.must_sync = self._strict
            self._sync_at = FAR
        elif self._sync_at == FAR:
            self._sync_at = now + SYNC_WITHIN
        self._quiet_since = now

    def told(self) -> None:
        """The face knows something it has not shown."""
        self._show_at = min(self._show_at, self._shown_at + SHOW_WITHIN)

    def until(self) -> float:
        """When, by the monotonic clock, there is something to do."""
        until = min(self._sync_at, self._show_at)
        return min(until, self._quiet_since + 1.0) if self._state_written_at < self._journal.size else until

    def keep(self, run: Run) -> None:
        """Do what is due."""
        now = time.monotonic()
        if now >= self._show_at:
            self._face.refresh(run)
            self._shown_at, self._show_at = now, now + self._face.refresh_every
        if now >= self._sync_at:
            self._journal.sync()
            self._sync_at = FAR
        self._journal.snapshot(run)
        grown = self._journal.size - self._state_written_at
        if grown and (now - self._quiet_since >= 1.0 or (grown >= self._state_size and now >= self._state_due)):
            self.write_state(run)

    def leave(self, run: Run) -> None:
        """The run is left in order."""
        self._journal.sync()
        self.write_state(run)

    def write_state(self, run: Run) -> None:
        """The state file, made from the journal, which holds: a run does not end for it."""
        self._state_written_at = self._journal.size
        text = documents.state_file(run, self._journal.size)
        self._state_size = len(text)
        self._state_due = time.monotonic() + STATE_EVERY
        try:
            replace(self._state_file, text)
        except JournalError as error:
            self._face.on_note(f"the state file was not written: {error}")
