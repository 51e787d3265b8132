"""Somebody at a terminal: a pty in which a command of Raymond runs, typed into and read."""

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from collections.abc import Sequence

import pytest

from raymond.system import process_tree
from running import PATIENCE, Room, state_of, until


class Typist:
    """Somebody who types into a terminal in which a command runs."""

    def __init__(
        self, room: Room, *args: str, columns: int = 80, program: Sequence[str] = (), **environment: str
    ) -> None:
        if agent := process_tree.agent_above(process_tree.line(os.getpid()), os.getpid()):
            pytest.skip(f"{agent} runs these tests, and what it types is not typed by a person")
        self.said = ""
        self._pid, self._screen = pty.fork()
        if not self._pid:
            os.chdir(room.path)
            _set_columns(columns)
            known = {**room.environment, "TERM": "xterm", "INPUTRC": "/dev/null", **environment}
            argv = [*program] or room.argv(*args)
            os.execvpe(argv[0], argv, known)

    def type(self, text: str) -> None:
        # Ctrl-C between a prompt and the wait for a key is heard with the next key only, by Python itself.
        until(lambda: state_of(self._pid) != "R", "its wait for a key")
        os.write(self._screen, text.encode())

    def sees(self, pattern: str) -> str:
        """Wait until the rest of what is on the screen matches; what it was."""
        deadline = time.monotonic() + PATIENCE
        while not (found := re.search(pattern, self.said)):
            assert time.monotonic() < deadline, f"this never came: {pattern}\n{self.said}"
            assert self._read(), f"ended without saying {pattern}\n{self.said}"
        shown, self.said = self.said[: found.end()], self.said[found.end() :]
        return shown

    def end(self) -> int:
        """Its exit code, when it has ended."""
        while self._read():
            pass
        os.close(self._screen)
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def _read(self) -> bool:
        select.select([self._screen], [], [], PATIENCE)
        with contextlib.suppress(OSError):
            data = os.read(self._screen, 65536)
            plain = re.sub(r"\x1b\[[0-?]*[a-zA-Z]", "", data.decode("utf-8", "replace"))
            self.said += plain.replace("\r\n", "\n")
            return bool(data)
        return False


def _set_columns(columns: int) -> None:
    """Make the terminal on stdin that wide."""
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
