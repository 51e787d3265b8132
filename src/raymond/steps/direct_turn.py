"""A turn that is answered in this process."""

from collections.abc import Mapping

from raymond.backends import Delayed, Direct, Trouble
from raymond.backends.guard import GuardedDirect
from raymond.machine.inputs import Spending
from raymond.steps.job import TurnJob
from raymond.steps.step import FAR, Host
from raymond.steps.turn_step import TurnStep
from raymond.store.transcripts import PUBLISH_EVERY
from raymond.system import folders


class DirectTurn(TurnStep):
    """A turn answered in this process."""

    def __init__(self, host: Host, job: TurnJob, backend: Direct) -> None:
        super().__init__(host, job)
        self._guarded = GuardedDirect(backend, self.turn)
        self._answer = Delayed()
        self._due = FAR

    def start(self) -> None:
        """Ask for the answer; it counts when its time has come."""
        super().start()
        self._ask()

    def adopt(self, *, restart: bool = False) -> bool:
        """A turn in this process dies with it; its reply counts if it is in the session already."""
        self._ask()
        recalled = self._guarded.recall()
        if recalled:
            self.conclude(recalled)
            self.settle()
        else:
            self.interrupted(Spending(), by_death=not restart)
        return False

    def _ask(self) -> None:
        self._answer = self._guarded.answer()
        self._due = self.began + self._answer.delay if self._answer.ending else FAR
        self.see(self._answer.observations)

    def deadline(self) -> float:
        """When the answer comes, the turn has been silent for too long, or others may read what it was sent."""
        shown = self.began + PUBLISH_EVERY if self._record.offset < 0 else FAR
        return min(self._due, shown, super().deadline())

    def check(self, now: float) -> None:
        """Answer when it is time."""
        ending = self._answer.ending
        if self._concluding or self._verdict or now < self._due or not ending:
            super().check(now)
            return
        try:
            _write(self.outside(self.turn.cwd), self.turn.task_folder, self._answer.writes)
        except OSError as error:
            ending = Trouble(kind="setup", error=f"cannot write {error.filename}: {(error.strerror or '').lower()}")
        else:
            ending = self._guarded.finish(self._answer) or ending
        self.conclude(ending)

    def stop(self) -> None:
        """There is no process to wait for; a reply that is being read counts."""
        kind, error = self._verdict or (None, "")
        if self._concluding:
            self.settle()
        elif kind:
            self.conclude(Trouble(kind=kind, error=error))
        else:
            self.interrupted(Spending())


def _write(cwd: str, task_folder: str, writes: Mapping[str, str]) -> None:
    for name, text in writes.items():
        folders.write_for(cwd, task_folder, name, text)
