"""Tells a loop while it is driven: in its log, and on the terminal of whoever watches."""

from datetime import UTC, datetime
from typing import Protocol

from raymond.drivers.face import Face, Quiet
from raymond.faces.lines import Lines
from raymond.loops.formats import records
from raymond.loops.telling import Telling, Told
from raymond.machine.events import Decision
from raymond.machine.run import Run
from raymond.store import exports
from raymond.store.project import Project


class Screen(Protocol):
    """Where a loop is told to whoever watches."""

    @property
    def is_terminal(self) -> bool:
        """Whether a person looks at it, and no program reads it."""

    def on_note(self, text: str) -> None:
        """Show a line."""

    def tell(self, at: float, text: str) -> None:
        """Show a line with its time."""


def beside(first: Face, project: Project, id: str, loop: str) -> list[Face]:
    """The faces of a loop: where there are only lines, its own take the place of those about agents and states."""
    if isinstance(first, Lines):
        quiet = Lines(quiet=True)
        return [quiet, Narrator(project, id, loop, None if first.is_quiet else quiet)]
    live = dress(first, project)
    return [first, Narrator(project, id, loop, live)]


def dress(face: Face, project: Project) -> Screen | None:
    """Give a live view the board of the loop; None if the face is none."""
    from raymond.faces.live import Live  # where there is one, it is loaded by now
    from raymond.loops.board import LoopBoard

    if not isinstance(face, Live):
        return None
    face.give(LoopBoard(project))
    return face


class Narrator(Quiet):
    """What happens in a loop, line by line: in a file for programs, and on a screen for whoever watches."""

    def __init__(self, project: Project, id: str, loop: str, screen: Screen | None = None) -> None:
        self._tree = project.tree
        self.name = exports.log(project.tree, loop)
        self._telling: Telling | None = None
        self._transcripts = project.run(id).transcripts
        self._screen = screen

    def on_decisions(self, run: Run, decisions: list[Decision]) -> None:
        """Write what they mean for the loop."""
        if self._telling is None:
            self._telling = Telling(self._transcripts)
            self._telling.note(run)
        lines = []
        for decision in decisions:
            when = datetime.fromtimestamp(decision.time, UTC)
            for told in self._telling.of(decision):
                line = records.log_line(when, told.line) if told.line else ""
                lines += [f"{line}\n"] if line else []
                self._show(decision.time, told, line)
        if lines:
            exports.append(self.name, self._tree, "".join(lines).encode("utf-8", "backslashreplace"))

    def _show(self, at: float, told: Told, line: str) -> None:
        if self._screen is None:
            return
        if not self._screen.is_terminal and line:
            self._screen.on_note(line)
        elif self._screen.is_terminal and told.sentence:
            self._screen.tell(at, told.sentence)
