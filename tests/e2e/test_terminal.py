"""Ctrl-C in a real terminal while the real Claude Code works."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from e2e.conftest import Desk
from e2e.model import MISSING, Mute, Text, Tool, program
from raymond.machine.events import RunStopped, StepFinished, StepInterrupted
from raymond.machine.prompts import INTERRUPTED
from running import GO, Ran, alive, until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(program("claude") is None, reason=MISSING),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux, the terminal of these tests, is not installed"),
]

FILES = {"START.md": "prompt START", "NEXT.md": "prompt NEXT"}


class Pane:
    """A terminal of tmux with one command in it."""

    def __init__(self, room: Desk) -> None:
        self._room = room
        self._socket = f"raymond-e2e-{os.getpid()}-{id(self)}"

    def tmux(self, *args: str) -> str:
        environment = {**self._room.environment, "LC_ALL": "C.UTF-8", "TERM": "screen"}
        # The terminal itself is nothing that a run leaves behind.
        del environment["TEST_ROOM"]
        given = ["tmux", "-u", "-L", self._socket, "-f", "/dev/null", *args]
        done = subprocess.run(given, cwd=self._room.path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, *args: str) -> None:
        command = subprocess.list2cmdline([sys.executable, "-m", "raymond", *args])
        marked = f"TEST_ROOM={self._room.path} {command}; echo ended with $?; exec cat"
        self.tmux("new-session", "-d", "-x", "160", "-y", "24", marked)

    def press(self, key: str) -> None:
        self.tmux("send-keys", key)

    @property
    def text(self) -> str:
        return self.tmux("capture-pane", "-p", "-J", "-S", "-")

    def sees(self, pattern: str) -> re.Match[str]:
        """Wait until something is on the screen."""
        try:
            return until(lambda: re.search(pattern, self.text), pattern)
        except AssertionError:
            raise AssertionError(f"no {pattern} in\n{self.text}") from None

    def code(self) -> int:
        """Wait for the end of the command; its exit code."""
        return int(self.sees(r"(?m)^ended with (\d+)$")[1])

    def end(self) -> None:
        with contextlib.suppress(AssertionError):
            socket = self.tmux("display-message", "-p", "#{socket_path}").strip()
            self.tmux("kill-server")
            Path(socket).unlink(missing_ok=True)


@contextlib.contextmanager
def terminal(room: Desk, *args: str) -> Iterator[Pane]:
    pane = Pane(room)
    try:
        pane.start(*args)
        yield pane
    finally:
        pane.end()
        room.clear()


def left(room: Desk) -> Ran:
    """The run as the terminal left it."""
    return Ran(room, "r", 0, "", "")


PAUSING = (
    r"pausing after 1 running step \(main\); no new steps will start\s+"
    r"press Ctrl-C again to stop now: unfinished steps will rerun, and cost again, when you resume"
)


def test_ctrl_c_once_waits_for_the_turn_and_says_so(desk: Callable[..., Desk]) -> None:
    mute = Mute(text="<goto>NEXT</goto>")
    room = desk({"prompt START": mute, "prompt NEXT": Text("<result>fine</result>")})
    with terminal(room, *room.begin(FILES)) as pane:
        mute.gate.meet()
        pane.press("C-c")
        pane.sees(PAUSING)
        assert room.processes(), "the turn goes on"
        mute.gate.open()
        assert pane.code() == 130
        room.nothing_runs()
    ran = left(room)
    assert ran.all(RunStopped) == [RunStopped(kind="paused")]
    assert not ran.all(StepInterrupted)
    assert ran.run.agents["main"].state == "NEXT.md"
    assert len(room.server.requests) == 1
    assert room.resume().out == "fine\n"
    assert room.conversation("NEXT") == [
        ("user", "prompt START"),
        ("assistant", "<goto>NEXT</goto>"),
        ("user", "prompt NEXT"),
    ]


def test_ctrl_c_twice_stops_at_once_with_the_tool_and_the_step_runs_again(desk: Callable[..., Desk]) -> None:
    waits = Tool("Bash", {"command": f"echo $$ > tool; {GO}"})
    room = desk({INTERRUPTED: Text("<result>fine</result>"), "prompt START": waits})
    with terminal(room, *room.begin(FILES, "--allow-tool", "Bash")) as pane:
        noted = room.path / "tool"
        tool = int(until(lambda: noted.read_text("ascii") if noted.exists() else "", "the tool"))
        pane.press("C-c")
        pane.sees(PAUSING)
        assert alive(tool)
        pane.press("C-c")
        assert pane.code() == 130
        assert not alive(tool)
        room.nothing_runs()
    ran = left(room)
    assert len(ran.all(StepInterrupted)) == 1
    assert not ran.all(StepFinished)
    assert room.resume().out == "fine\n"
    assert room.conversation("START", visit=2) == [("user", f"{INTERRUPTED}\n\nprompt START")]
