"""A real terminal: tmux, typed into and read."""

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from running import Room, until

PROGRAM = """
import os, sys
from raymond.control.drive import hold
from raymond.control.start import Choices, begin
from raymond.faces.live import Live
from raymond.store import loader, project

loaded = loader.load(sys.argv[1])
home = project.at(os.getcwd())
face = Live(stdin=0)
held = hold(home, begin(home, loaded, Choices(id="r")), face, loaded=loaded)
try:
    held.driver.drive()
finally:
    held.close()
    face.close()
print(held.driver.run.final_status or "not ended", file=sys.stderr)
"""

in_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux, the terminal of these tests, is not installed")


MARK = re.compile(r"^[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏?=z✗·…] ")
"""What the row of an agent begins with."""


class Pane:
    """A terminal of tmux in which the program above drives a workflow."""

    def __init__(self, room: Room, width: int) -> None:
        self._room = room
        self._socket = f"raymond-test-{os.getpid()}-{id(self)}"
        self._width = width

    def tmux(self, *args: str) -> str:
        given = ["tmux", "-u", "-L", self._socket, "-f", "/dev/null", *args]
        environment = {**self._room.environment, "LC_ALL": "C.UTF-8"}
        environment.pop("TMUX", None)
        done = subprocess.run(given, cwd=self._room.path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, folder: str) -> None:
        # `stty` shows what the program left behind.
        command = f"{self.command(folder)}; stty -a | grep -ow -e -echo -e echo; exec sleep 600"
        self.tmux("new-session", "-d", "-x", str(self._width), "-y", "24", f"echo before; {command}")

    def command(self, folder: str) -> str:
        program = self._room.path.parent / "program.py"
        program.write_text(PROGRAM, "utf-8")
        return f"{sys.executable} {program} {folder}"

    def cursor(self) -> bool:
        return self.tmux("display-message", "-p", "#{cursor_flag}") == "1\n"

    def type(self, *keys: str) -> None:
        self.tmux("send-keys", *keys)

    @property
    def lines(self) -> list[str]:
        """All that was ever written, the times and marks left out."""
        text = self.tmux("capture-pane", "-p", "-S", "-").rstrip("\n")
        lines = [re.sub(r"^\d\d:\d\d:\d\d ", "TIME ", line.rstrip()) for line in text.splitlines()]
        return [MARK.sub("", line) for line in lines]

    def sees(self, pattern: str) -> list[str]:
        """Wait for a line; all of them then."""

        def found() -> list[str]:
            lines = self.lines
            return lines if any(re.fullmatch(pattern, line) for line in lines) else []

        try:
            return until(found, pattern)
        except AssertionError:
            raise AssertionError(f"no line {pattern} in\n" + "\n".join(self.lines)) from None

    def end(self) -> None:
        with contextlib.suppress(AssertionError):
            socket = self.tmux("display-message", "-p", "#{socket_path}").strip()
            self.tmux("kill-server")
            Path(socket).unlink(missing_ok=True)
        self._room.clear()


@contextlib.contextmanager
def terminal(room: Room, *args: str) -> Iterator[Pane]:
    """A real terminal in which the real command runs."""
    pane = Pane(room, 100)
    command = shlex.join(room.argv(*args))
    try:
        pane.tmux("new-session", "-d", "-x", "100", "-y", "24", f"{command}; echo code $?; exec sleep 600")
        yield pane
    finally:
        pane.end()
