"""What a kind of run adds to the live view: rows of its own, and what Enter means below a question."""

from typing import Protocol

from raymond.faces.look import Look
from raymond.faces.rows import Row
from raymond.machine.run import Run
from raymond.views.questions import Question


class Board(Protocol):
    """Rows between the header of the block and its agents."""

    def rows(self, run: Run, look: Look, now: float) -> list[Row]:
        """The rows, the most important first: where there is little room, the last are left out."""

    def enter(self, asked: Question) -> str:
        """The answer that Enter alone gives; empty when it gives none."""


class NoBoard:
    """Nothing is added."""

    def rows(self, run: Run, look: Look, now: float) -> list[Row]:
        """No rows."""
        return []

    def enter(self, asked: Question) -> str:
        """Enter alone is no answer."""
        return ""
