"""Several faces as one."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from raymond.drivers.face import Face
from raymond.machine.events import Decision
from raymond.machine.run import Run

if TYPE_CHECKING:
    from raymond.faces.notify import Notifier


class Faces:
    """All of them, told as one. An error in any but the first never ends the run."""

    def __init__(self, faces: list[Face]) -> None:
        self._faces = faces
        self.refresh_every = min(face.refresh_every for face in faces)
        self.stdin = faces[0].stdin
        self.wants_raw = any(map(_wants_raw, faces))
        self._notifier: Notifier | None = None

    @property
    def can_answer(self) -> bool:
        """Whether a person answers the first one."""
        return self._faces[0].can_answer

    def notify(self, targets: list[str]) -> None:
        """Tell `targets` too."""
        if targets:
            from raymond.faces.notify import Notifier

            self._notifier = Notifier(targets, self.on_note)
            self._faces.append(self._notifier)

    def tell_end(self, run: Run, code: int) -> None:
        """Notify how it ended, and wait until that was told; the terminal is free again."""
        if self._notifier:
            from raymond.faces.lines import Lines

            self._notifier.ended(run, code, Lines().on_note)

    def on_decisions(self, run: Run, decisions: list[Decision]) -> None:
        """Tell all of them."""
        self._each(lambda face: face.on_decisions(run, decisions))

    def on_output(self, agent: str, kind: str, text: str) -> None:
        """Tell all of them; what a program printed, only those who want it."""
        self._each(
            lambda face: face.on_output(agent, kind, text) if kind != "raw" or _wants_raw(face) else None,
        )

    def on_note(self, text: str) -> None:
        """Tell all of them."""
        self._each(lambda face: face.on_note(text))

    def on_pausing(self, run: Run) -> None:
        """Tell all of them."""
        self._each(lambda face: face.on_pausing(run))

    def refresh(self, run: Run) -> None:
        """Let all of them show it."""
        self._each(lambda face: face.refresh(run))

    def answers(self) -> list[tuple[str, str]]:
        """What the first one heard."""
        answers = self._faces[0].answers()
        self.stdin = self._faces[0].stdin
        return answers

    def helpers(self) -> list[int]:
        """Those that tell somebody elsewhere."""
        return self._notifier.helpers() if self._notifier else []

    def close(self) -> None:
        """Close all of them."""
        first, *others = self._faces
        first.close()
        for face in others:
            try:
                face.close()
            except OSError as error:
                first.on_note(_lost(face, error))

    def _each(self, tell: Callable[[Face], None]) -> None:
        first, *others = self._faces
        tell(first)
        for face in others:
            try:
                tell(face)
            except OSError as error:
                self._faces.remove(face)
                first.on_note(_lost(face, error))


def _wants_raw(face: Face) -> bool:
    return bool(getattr(face, "wants_raw", False))


def _lost(face: Face, error: OSError) -> str:
    where = error.filename or getattr(face, "name", "a face of the run")
    return f"{where}: {(error.strerror or '').lower()}; nothing more is written there"
