"""What a driver tells, and to whom."""

from typing import Protocol

from raymond.machine.events import Decision
from raymond.machine.run import Run


class Face(Protocol):
    """Tells people or programs what happens in a run."""

    refresh_every: float
    """Seconds between two refreshes while nothing happens."""
    stdin: int
    """The file descriptor where a person types answers; -1 when nobody does."""

    @property
    def can_answer(self) -> bool:
        """Whether a question that is open now may still be answered there."""

    def on_decisions(self, run: Run, decisions: list[Decision]) -> None:
        """These decisions are in the journal; the next `refresh` shows them."""

    def on_output(self, agent: str, kind: str, text: str) -> None:
        """A step printed something, or used a tool."""

    def on_note(self, text: str) -> None:
        """Something a person should know."""

    def on_pausing(self, run: Run) -> None:
        """The first Ctrl-C: no new step starts, and the run pauses when the running steps have ended."""

    def refresh(self, run: Run) -> None:
        """Show the current state."""

    def answers(self) -> list[tuple[str, str]]:
        """What was typed into `stdin`: agents that asked, and their answers."""

    def helpers(self) -> list[int]:
        """Processes that it has started for a person: what they ask, no step asks."""

    def close(self) -> None:
        """Release terminals and files."""


class Quiet:
    """A face that ignores everything: the base of faces that only care about some of it."""

    refresh_every = float("inf")
    stdin = -1
    wants_raw = False
    """It is told every line that a program prints, as output of the kind `raw`."""

    @property
    def can_answer(self) -> bool:
        """Nobody types here."""
        return False

    def on_decisions(self, run: Run, decisions: list[Decision]) -> None:
        """Ignore them."""

    def on_output(self, agent: str, kind: str, text: str) -> None:
        """Ignore it."""

    def on_note(self, text: str) -> None:
        """Ignore it."""

    def on_pausing(self, run: Run) -> None:
        """Ignore it."""

    def refresh(self, run: Run) -> None:
        """Show nothing."""

    def answers(self) -> list[tuple[str, str]]:
        """Nobody types here."""
        return []

    def helpers(self) -> list[int]:
        """None."""
        return []

    def close(self) -> None:
        """Hold nothing."""
