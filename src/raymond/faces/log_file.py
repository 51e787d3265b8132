"""The lines of a run in a file, as text or JSON."""

import errno
import os
import shlex
import stat
from typing import TextIO

import msgspec

from raymond.drivers.face import Quiet
from raymond.errors import UsageError
from raymond.faces import lines, words
from raymond.machine.events import Decision
from raymond.machine.run import Run
from raymond.views.times import instant

_KEPT = ("print", "tool", "text", "note")
"""What steps do that is kept: pieces of texts and signs of life are for those who watch."""


_NEW = os.O_WRONLY | os.O_CREAT | os.O_APPEND


def check(path: str) -> None:
    """Refuse a file that cannot be written. A pipe stays open: whoever reads it leaves when its last writer does."""
    fd = _opened(path, _NEW)
    if not stat.S_ISFIFO(os.fstat(fd).st_mode):
        os.close(fd)


def check_dry(path: str) -> None:
    """Refuse the same and make nothing; a pipe may get its reader later."""
    above = os.path.dirname(os.path.abspath(path))
    try:
        os.close(os.open(above, os.O_RDONLY | os.O_DIRECTORY))
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not os.access(path if os.path.exists(path) else above, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise _unwritable(path, error) from None


def _opened(path: str, flags: int) -> int:
    """A file that can be appended to. Follows a link: the path is a person's to choose, and /dev/stdout is one."""
    try:
        if os.path.exists(path) and stat.S_ISBLK(os.stat(path).st_mode):
            raise OSError(errno.EINVAL, "a disk cannot be appended to")
        fd = os.open(path, flags | os.O_NONBLOCK, 0o600)
    except OSError as error:
        raise _unwritable(path, error) from None
    os.set_blocking(fd, True)
    return fd


def _unwritable(path: str, error: OSError) -> UsageError:
    above = os.path.dirname(os.path.abspath(path))
    hint = "name a file that you can write to"
    if not os.path.exists(above):
        hint = f"mkdir -p {shlex.quote(above)}"
    elif error.errno == errno.ENXIO:
        hint = "start what reads it first"
    return UsageError(f"--log-file {path}: {_reason(path, error)}", hint=hint)


def _reason(path: str, error: OSError) -> str:
    if error.errno == errno.ENXIO and stat.S_ISFIFO(os.stat(path).st_mode):
        return "nobody reads this pipe"
    return (error.strerror or "").lower()


class LogFile(Quiet):
    """Every line of a run in a file: as the terminal would show it, or an event as JSON."""

    def __init__(self, path: str, form: str) -> None:
        self._file: TextIO = open(path, "a", encoding="utf-8", errors="backslashreplace", opener=_opened)
        self.name = path
        self._json = form == "json"
        self._lines = lines.Lines(self._file)

    def on_decisions(self, run: Run, decisions: list[Decision]) -> None:
        """Note what is now in the journal."""
        if not self._json:
            self._lines.on_decisions(run, decisions)
            return
        for decision in decisions:
            for event in decision.events:
                self._put(msgspec.to_builtins(event) | {"time": instant(decision.time), "seq": decision.seq})

    def on_output(self, agent: str, kind: str, text: str) -> None:
        """Note what a step said."""
        if self._json and kind in _KEPT:
            self._put({"type": kind, "agent": agent, "text": text})
        elif not self._json:
            self._lines.on_output(agent, kind, text)

    def on_note(self, text: str) -> None:
        """Note what a person was told."""
        if self._json:
            self._put({"type": "said", "text": text})
        else:
            self._lines.on_note(text)

    def on_pausing(self, run: Run) -> None:
        """Note what Ctrl-C waits for."""
        if self._json:
            self.on_note(words.pausing(run))
        else:
            self._lines.on_pausing(run)

    def refresh(self, run: Run) -> None:
        """Write what was noted."""
        self._lines.refresh(run)
        self._file.flush()

    def close(self) -> None:
        """Write what was noted, and close the file."""
        self._lines.refresh()
        self._file.close()

    def _put(self, fields: dict[str, object]) -> None:
        self._file.write(msgspec.json.encode(fields).decode() + "\n")
