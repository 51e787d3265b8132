"""A driver's side jobs: sync the journal, keep its snapshot and the state file, refresh the face."""

import time
from collections.abc import Callable
from typing import TypeAlias

from raymond.drivers.face import Face
from raymond.errors import JournalError
from raymond.machine.agent import ASKING
from raymond.machine.run import Run
from raymond.store.journal import Journal
from raymond.system.files import replace
from raymond.views.status import run_status

SYNC_WITHIN = 0.1
"""Seconds within which what was written is synced, when nothing demands that at once."""
SHOW_WITHIN = 0.05
"""Seconds within which decisions are shown, all of them at once."""
STATE_EVERY = 1.0
"""Seconds between two writes of the state file while decisions keep coming."""
EXPORT_EVERY = 5.0
"""Seconds between two writes of the state file that others see."""
FAR = float("inf")
Describe: TypeAlias = Callable[[Run], bytearray]
"""Makes the state file of a run; the faces choose the words."""


class Export:
    """The state file in the project, for others to read: written when the status or a question has changed."""

    def __init__(self, put: Callable[[bytes | bytearray], None], face: Face) -> None:
        self.next = 0.0
        """When, by the monotonic clock, the next look is due."""
        self._put = put
        self._face = face
        self._shows: object = None
        self._failed = False

    def put_off(self) -> None:
        """A run that was driven before has one: describing thousands of agents can wait until steps have started."""
        self.next = time.monotonic() + EXPORT_EVERY

    def keep(self, run: Run, describe: Callable[[], bytes | bytearray]) -> None:
        """Write it if it would show something new, but not too often."""
        now = time.monotonic()
        if now >= self.next:
            self.next = now + EXPORT_EVERY
            shows = (run_status(run), [agent.question for agent in run.agents.values() if agent.status == ASKING])
            if shows != self._shows:
                self._shows = shows
                self.write(describe())

    def write(self, text: bytes | bytearray) -> None:
        """Write it. Nothing depends on it, so a run does not end when it cannot be written."""
        try:
            self._put(text)
        except JournalError as error:
            if not self._failed:
                self._face.on_note(f"the state file in the project was not written: {error}")
            self._failed = True


class Upkeep:
    """Does each thing when it is time, and not before."""

    def __init__(
        self, journal: Journal, state_file: str, describe: Describe, face: Face, export: Export, *, strict: bool
    ) -> None:
        self.must_sync = strict
        """The next write has to be on the disk before anything follows from it."""
        self._journal = journal
        self._state_file = state_file
        self._describe = describe
        self._face = face
        self._export = export
        self._exported = 0
        """The size the journal had when the export was last looked at."""
        self._strict = strict
        self._next_sync = FAR
        self._quiet_since = time.monotonic()
        self._state_of = 0
        """The size the journal had when the state file was written."""
        self._state_size = 0
        self._next_state = 0.0
        self._shown_at = 0.0
        self._next_show = FAR

    def write(self) -> None:
        """Write what was added to the journal: nothing follows from a decision before this."""
        if not self._journal.write():
            return
        now = time.monotonic()
        if self.must_sync:
            self._journal.sync()
            self.must_sync = self._strict
            self._next_sync = FAR
        elif self._next_sync == FAR:
            self._next_sync = now + SYNC_WITHIN
        self._quiet_since = now

    def told(self) -> None:
        """The face was told something that it has not shown."""
        self._next_show = min(self._next_show, self._shown_at + SHOW_WITHIN)

    def next_due(self) -> float:
        """When, by the monotonic clock, `keep` has something to do."""
        until = min(self._next_sync, self._next_show)
        if self._exported < self._journal.size:
            until = min(until, self._export.next)
        return min(until, self._quiet_since + 1.0) if self._state_of < self._journal.size else until

    def keep(self, run: Run) -> None:
        """Do what is due."""
        now = time.monotonic()
        if now >= self._next_show:
            self._face.refresh(run)
            self._shown_at, self._next_show = now, now + self._face.refresh_every
        if now >= self._next_sync:
            self._journal.sync()
            self._next_sync = FAR
        self._journal.snapshot(run)
        grown = self._journal.size - self._state_of
        if grown and (now - self._quiet_since >= 1.0 or (grown >= self._state_size and now >= self._next_state)):
            self._write_state(self._describe(run))
        if now >= self._export.next and self._exported < self._journal.size:
            self._exported = self._journal.size
            self._export.keep(run, lambda: self._describe(run))

    def leave(self, run: Run) -> None:
        """The driver leaves: sync the journal, and write both state files once more."""
        self._journal.sync()
        text = self._describe(run)
        self._export.write(text)
        self._write_state(text)

    def _write_state(self, text: bytearray) -> None:
        """Write the state file. The journal has everything it says, so a run does not end when it cannot be written.

        The length of the journal is added, by which a reader can tell whether it is up to date.
        """
        self._state_of = self._journal.size
        self._state_size = len(text)
        self._next_state = time.monotonic() + STATE_EVERY
        text[-2:] = b',"journal_bytes":%d}\n' % self._journal.size
        try:
            replace(self._state_file, text)
        except JournalError as error:
            self._face.on_note(f"the state file was not written: {error}")
