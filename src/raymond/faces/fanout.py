"""Several faces as one."""

from collections.abc import Callable

from raymond.drivers.face import Face
from raymond.machine.events import Decision
from raymond.machine.run import Run


class Faces:
    """All of them, told as one. What goes wrong with one of the later ones never costs the run."""

    def __init__(self, faces: list[Face]) -> None:
        self._faces = faces
        self.every = min(face.every for face in faces)
        self.keys = faces[0].keys

    def notify(self, targets: list[str]) -> None:
        """Tell `targets` too."""
        if targets:
            from raymond.faces.notify import Notifier

            self._faces.append(Notifier(targets))

    def decided(self, run: Run, decisions: list[Decision]) -> None:
        """Tell all of them."""
        self._each(lambda face: face.decided(run, decisions))

    def shown(self, agent: str, kind: str, text: str) -> None:
        """Tell all of them."""
        self._each(lambda face: face.shown(agent, kind, text))

    def said(self, text: str) -> None:
        """Tell all of them."""
        self._each(lambda face: face.said(text))

    def refresh(self, run: Run) -> None:
        """Let all of them show it."""
        self._each(lambda face: face.refresh(run))

    def typed(self) -> list[tuple[str, str]]:
        """What the first one heard."""
        typed = self._faces[0].typed()
        self.keys = self._faces[0].keys
        return typed

    def close(self) -> None:
        """Let go of terminals and files."""
        first, *others = self._faces
        getattr(first, "close", lambda: None)()
        for face in others:
            try:
                getattr(face, "close", lambda: None)()
            except OSError as error:
                first.said(_lost(face, error))

    def _each(self, tell: Callable[[Face], None]) -> None:
        first, *others = self._faces
        tell(first)
        for face in others:
            try:
                tell(face)
            except OSError as error:
                self._faces.remove(face)
                first.said(_lost(face, error))


def _lost(face: Face, error: OSError) -> str:
    where = error.filename or getattr(face, "name", "a face of the run")
    return f"{where}: {(error.strerror or '').lower()}; nothing more is written there"
