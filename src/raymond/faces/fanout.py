"""Several faces of one run: whoever is told what happens beside the person at the terminal."""

from collections.abc import Callable
from typing import TextIO

import msgspec

from raymond.drivers.local import Face
from raymond.errors import UsageError
from raymond.faces import lines
from raymond.machine.events import Decision
from raymond.machine.run import Run
from raymond.store.project import private
from raymond.views.times import instant


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


class LogFile:
    """Every line of a run in a file: as the terminal would show it, or an event as JSON."""

    every = float("inf")
    keys = -1

    def __init__(self, path: str, form: str) -> None:
        try:
            self._file: TextIO = open(path, "a", encoding="utf-8", errors="backslashreplace", opener=private)
        except OSError as error:
            raise UsageError(f"--log-file {path}: {(error.strerror or '').lower()}") from None
        self.name = path
        self._json = form == "json"
        self._lines = lines.Lines(self._file)

    def decided(self, run: Run, decisions: list[Decision]) -> None:
        """Note what now stands in the journal."""
        if not self._json:
            self._lines.decided(run, decisions)
            return
        for decision in decisions:
            for event in decision.events:
                self._put(msgspec.to_builtins(event) | {"time": instant(decision.time), "seq": decision.seq})

    def shown(self, agent: str, kind: str, text: str) -> None:
        """Note what a step said."""
        if self._json:
            self._put({"type": kind, "agent": agent, "text": text})
        else:
            self._lines.shown(agent, kind, text)

    def said(self, text: str) -> None:
        """Note what a person was told."""
        if self._json:
            self._put({"type": "said", "text": text})
        else:
            self._lines.said(text)

    def refresh(self, run: Run) -> None:
        """Put what was noted."""
        self._lines.refresh(run)
        self._file.flush()

    def typed(self) -> list[tuple[str, str]]:
        """Nobody types into a file."""
        return []

    def close(self) -> None:
        """Put what was noted, and let go of the file."""
        self._lines.refresh()
        self._file.close()

    def _put(self, fields: dict[str, object]) -> None:
        self._file.write(msgspec.json.encode(fields).decode() + "\n")
