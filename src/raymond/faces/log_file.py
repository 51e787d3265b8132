"""The lines of a run in a file, as text or JSON."""

from typing import TextIO

import msgspec

from raymond.errors import UsageError
from raymond.faces import lines
from raymond.machine.events import Decision
from raymond.machine.run import Run
from raymond.system.files import private
from raymond.views.times import instant


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
