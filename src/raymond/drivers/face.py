"""What a driver tells, and whom."""

from typing import Protocol

from raymond.machine.events import Decision
from raymond.machine.run import Run


class Face(Protocol):
    """Who is told what happens."""

    every: float
    """Seconds between two refreshes while nothing happens."""
    keys: int
    """Where a person types answers; -1 when nobody does."""

    def decided(self, run: Run, decisions: list[Decision]) -> None:
        """These decisions stand in the journal; they are shown with the next `refresh`."""

    def shown(self, agent: str, kind: str, text: str) -> None:
        """A step printed something, or used a tool."""

    def said(self, text: str) -> None:
        """Something a person should know."""

    def refresh(self, run: Run) -> None:
        """Show what is known by now."""

    def typed(self) -> list[tuple[str, str]]:
        """What came in through `keys`: agents that asked, and their answers."""
