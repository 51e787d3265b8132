"""A file of processes, for whoever has to find them when this process is dead.

Most of them carry a mark, but a program may start without its environment, or write over it.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping

from raymond.errors import JournalError
from raymond.system import ancestry, files
from raymond.system.processes import alive, boot, start_time

_MANY = 1000
"""Lines that are added before those of processes that have ended are dropped."""
_MOST = 1 << 20
"""Bytes that are read: all steps can write there."""
_DIGITS = 19


class Noted:
    """The processes in a file, each with the step it was started as; 0 when that is not known."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._added = 0

    def add(self, steps: Mapping[int, int]) -> None:
        """Add processes; one that cannot be written down is only found by its mark."""
        since = boot()
        lines = [f"{pid} {step} {start_time(pid)} {since}\n" for pid, step in steps.items()]
        with contextlib.suppress(OSError), open(self._path, "a", encoding="ascii", opener=files.private) as file:
            file.write("".join(lines))
        self._added += len(lines)
        if self._added >= _MANY:
            self._added = 0
            kept = "".join(f"{pid} {step} {began} {since}\n" for pid, step, began in self._read())
            with contextlib.suppress(JournalError):
                files.replace(self._path, kept.encode())

    def left(self) -> dict[int, int]:
        """Those that are still there, with their steps: not later processes with their numbers.

        Every step can write to the file: what we come from ourselves is no step, whatever stands there.
        """
        found = {pid: step for pid, step, _ in self._read()}
        above = {process.pid for process in _above()} if found else set[int]()
        return {pid: step for pid, step in found.items() if pid not in above}

    def forget(self) -> None:
        """None of them is left."""
        with contextlib.suppress(OSError):
            os.unlink(self._path)

    def _read(self) -> Iterator[tuple[int, int, str]]:
        try:
            lines = files.contents(self._path, _MOST).decode("ascii", "replace").splitlines()
        except OSError:
            return
        since = boot()
        for words in map(str.split, lines):
            # A driver that was killed may have written half a line.
            if len(words) == 4 and _is_number(words[0]) and _is_number(words[1]) and words[3] == since:
                pid, step, began = int(words[0]), int(words[1]), words[2]
                if alive(pid, began):
                    yield pid, step, began


def _above() -> list[ancestry.Process]:
    """This process, and those that it comes from."""
    with contextlib.suppress(ancestry.Unseen):
        return ancestry.line(os.getpid())
    return []


def _is_number(word: str) -> bool:
    return word.isdecimal() and len(word) <= _DIGITS
