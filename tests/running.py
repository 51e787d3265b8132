"""Run workflows for the tests: in this process, or as the real command."""

import contextlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any, TypeVar

import pytest

from raymond.control import start as start_module
from raymond.control.drive import hold
from raymond.control.start import Choices
from raymond.faces.lines import Lines
from raymond.machine.events import Event, StepStarted
from raymond.machine.run import Run
from raymond.store import journal, loader, lock, transcripts
from raymond.store.home import Home
from raymond.store.project import Project
from raymond.store.run_folder import RunFolder
from raymond.views.status import exit_code, main_result

T = TypeVar("T")
PATIENCE = 60.0
"""Seconds until something that does not come is called missing; nothing is measured with it."""
GO = "while [ ! -e go ]; do sleep 0.02; done"
"""A line of a script that waits until the test has made the file `go`."""

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # A suite started in the background ignores Ctrl-C, and so would every command it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def until(condition: Callable[[], T | None], what: str) -> T:
    """Wait for something to be true; what it is then."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"this never came: {what}"
        time.sleep(0.01)


def timeless(text: str) -> str:
    """What was told about gates, as if they had taken no time."""
    return re.sub(r"(gate is red|gate passed) \((?:[\d.]+[hms] ?)+", r"\1 (0s", text)


class Ran:
    """A run that was driven, and what it left behind."""

    def __init__(self, room: "Room", id: str, code: int, out: str, err: str) -> None:
        self.room, self.id, self.code, self.out, self.err = room, id, code, out, err

    @property
    def run(self) -> Run:
        return journal.read(self.room.project.run(self.id)).run

    @property
    def result(self) -> str | None:
        return main_result(self.run)

    @property
    def events(self) -> list[Event]:
        return self.room.events(self.id)

    def all(self, *kinds: type[T]) -> list[T]:
        return [event for event in self.events if isinstance(event, kinds)]

    @property
    def lines(self) -> list[str]:
        """What was told, without the times."""
        return [line.partition("] ")[2] if line.startswith("[2") else line for line in self.err.splitlines()]

    def transcript(self, agent: str = "main") -> list[dict[str, Any]]:
        """One entry per step or turn of an agent: its lines put together."""
        folder = self.room.project.run(self.id).transcripts
        mine = [event for event in self.events if getattr(event, "agent", "") == agent]
        offsets = [offset for event in mine if (offset := getattr(event, "offset", -1)) >= 0]
        return [_together(transcripts.read_record(folder, agent, offset)) for offset in offsets]

    def sessions(self, agent: str, state: str) -> list[str]:
        """The conversations an agent's turns in a state wrote, in order."""
        return [one["session"] for one in self.transcript(agent) if one["state"] == state]


def _together(lines: list[dict[str, Any]]) -> dict[str, Any]:
    whole: dict[str, Any] = {}
    for line in lines:
        for key, value in line.items():
            whole[key] = (
                whole[key] + value if key in ("out", "err", "note", "talk", "tools", "said") and key in whole else value
            )
    return whole


class Live:
    """A command while it runs."""

    def __init__(self, room: "Room", args: tuple[str, ...], environment: Mapping[str, str]) -> None:
        room.commands += 1
        self._room = room
        self._out, self._err = (room.path.parent / f"{room.commands}.{name}" for name in ("out", "err"))
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                room.argv(*args),
                cwd=room.path,
                env={**room.environment, **environment},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
        self.pid = self.process.pid

    @property
    def out(self) -> str:
        return self._out.read_text("utf-8")

    @property
    def err(self) -> str:
        return self._err.read_text("utf-8")

    def sees(self, text: str) -> None:
        """Wait until the command has said `text` on stderr."""
        until(lambda: text in self.err or self.process.poll() is not None, text)
        assert text in self.err, f"ended without saying {text!r}:\n{self.err}"

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def wait(self, id: str = "r") -> Ran:
        code = self.process.wait(PATIENCE)
        return Ran(self._room, id, code, self.out, self.err)


class Room:
    """A directory to start runs in, with a project of its own; what was started there is found by its environment."""

    def __init__(self, path: Path, **environment: str) -> None:
        self.path = path / "room"
        self.path.mkdir()
        self.commands = 0
        kept = {name: value for name, value in os.environ.items() if not name.startswith("RAYMOND")}
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        self._mark = f"TEST_ROOM={self.path}"
        home = path / "home"
        home.mkdir()
        kept = {name: value for name, value in kept.items() if not name.startswith("XDG_")}
        self.environment = {**kept, "HOME": str(home), "TEST_ROOM": str(self.path), **environment}
        self.home = Path(self.environment.get("RAYMOND_HOME", f"{self.environment['HOME']}/.local/state/raymond"))
        self.project = Project(Home(str(self.home)), str(self.path))

    def flow(self, files: Mapping[str, str], name: str = "flow") -> str:
        """Write a workflow beside the room."""
        folder = self.path.parent / name
        for file, text in files.items():
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text), "utf-8")
        return str(folder)

    def folder(self, id: str = "r") -> Path:
        """Where a run is kept."""
        return Path(self.project.run(id).path)

    def settings(self, text: str) -> None:
        """Add to what the person of this room has in their own config.toml."""
        path = Path(self.environment["HOME"], ".config", "raymond", "config.toml")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(text)

    def argv(self, *args: str) -> list[str]:
        """What starts a command of Raymond."""
        return [sys.executable, "-m", "raymond", *args]

    def raymond(self, *args: str, **given: Any) -> subprocess.CompletedProcess[str]:
        """Run a command of Raymond to its end."""
        return self.execute(*self.argv(*args), **given)

    def execute(self, *argv: str, **given: Any) -> subprocess.CompletedProcess[str]:
        """Run any command to its end."""
        return subprocess.run(
            argv,
            cwd=given.pop("cwd", self.path),
            env=self.environment | given.pop("environment", {}),
            text=True,
            timeout=PATIENCE,
            check=False,
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **given},
        )

    def popen(self, *args: str) -> "subprocess.Popen[bytes]":
        """Start a command that is not waited for here."""
        quiet = subprocess.DEVNULL
        return subprocess.Popen(
            self.argv(*args), cwd=self.path, env=self.environment, stdin=quiet, stdout=quiet, stderr=quiet
        )

    def command(self, files: Mapping[str, str], *args: str, id: str = "r") -> Ran:
        """Start a workflow with the real command and wait for its end."""
        done = self.raymond("run", self.flow(files), "--id", id, *args)
        return Ran(self, id, done.returncode, done.stdout, done.stderr)

    def resume(self, *args: str, id: str = "r") -> Ran:
        done = self.raymond("resume", id, *args)
        return Ran(self, id, done.returncode, done.stdout, done.stderr)

    @contextlib.contextmanager
    def start(self, *args: str, **environment: str) -> Iterator[Live]:
        """A command that runs while the block does; whatever it left is ended after it."""
        live = Live(self, args, environment)
        try:
            yield live
        finally:
            if live.process.poll() is None:
                live.process.kill()
                live.process.wait()
            self.clear()

    def drive(self, files: Mapping[str, str], *, id: str = "r", **options: Any) -> Ran:
        """Start a workflow in this process and drive it to its end."""
        folder = self.flow(files)
        return self._here(id, lambda: self._begin(folder, Choices(id=id, **options)))

    def again(self, id: str = "r") -> Ran:
        """Take a run up in this process."""
        return self._here(id, lambda: None)

    def _begin(self, folder: str, options: Choices) -> loader.Loaded:
        loaded = loader.load(folder, overrides=options.overrides)
        start_module.begin(self.project, loaded, options)
        return loaded

    def _here(self, id: str, begin: Callable[[], loader.Loaded | None]) -> Ran:
        told = io.StringIO()
        before = dict(os.environ)
        with contextlib.chdir(self.path):
            os.environ.clear()
            os.environ.update(self.environment)
            try:
                held = hold(self.project, id, Lines(told), loaded=begin())
                try:
                    held.driver.drive()
                finally:
                    held.close()
            finally:
                os.environ.clear()
                os.environ.update(before)
        run = held.driver.run
        return Ran(self, id, exit_code(run, held.driver.signal), main_result(run) or "", told.getvalue())

    def go(self) -> None:
        """Let the scripts that wait for it go on."""
        (self.path / "go").touch()

    def events(self, id: str = "r") -> list[Event]:
        return [event for decision in journal.decisions(self.project.run(id)) for event in decision.events]

    def steps(self, id: str = "r") -> list[StepStarted]:
        return [event for event in self.events(id) if isinstance(event, StepStarted)]

    def processes(self) -> dict[int, str]:
        """Everything that runs and was started from here: pid -> command line."""
        found = {}
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != os.getpid():
                with contextlib.suppress(OSError):
                    environ = Path("/proc", name, "environ").read_bytes().split(b"\0")
                    if self._mark.encode() in environ and state_of(int(name)) != "Z":
                        found[int(name)] = Path("/proc", name, "cmdline").read_bytes().replace(b"\0", b" ").decode()
        return found

    def nothing_runs(self) -> None:
        """Nothing that was started here is left; what was just ended may take a moment to go."""
        until(lambda: not self.processes(), f"the end of {self.processes()}")

    def clear(self) -> None:
        """End whatever is left, so that a failing test leaves nothing behind."""
        for pid in self.processes():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def driver_of(folder: RunFolder) -> int:
    """The process that drives a run, once it has signed: a signal to 0 would end whoever runs these tests."""
    return until(lambda: (lock.holder(folder) or lock.Holder()).pid, "its driver")


def state_of(pid: int) -> str:
    """What the kernel says of a process in a letter: R runs, S waits, Z has ended."""
    return Path("/proc", str(pid), "stat").read_text("utf-8").rpartition(")")[2].split()[0]


def alive(pid: int) -> bool:
    """The process is there and no zombie."""
    try:
        return state_of(pid) != "Z"
    except OSError:
        return False


def zombie(pid: int) -> bool:
    """The process has ended and nobody has taken note."""
    try:
        return state_of(pid) == "Z"
    except OSError:
        return False


def as_anyone() -> tuple[str, ...]:
    """Before a command: what makes permissions hold for it, although root runs the tests."""
    if os.geteuid() != 0:
        return ()
    without = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--")
    if not shutil.which("setpriv") or subprocess.run([*without, "true"], check=False, capture_output=True).returncode:
        pytest.skip("root may read and write everything, and there is no setpriv to give that up")
    return without
