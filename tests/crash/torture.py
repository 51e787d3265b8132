"""Kill a real run at chance moments, take it up again, and look for anything lost, doubled or left running.

A round is named by its seed, which decides how often, when and whom to kill:
    driver    the driver alone: turns outlive it, so nothing is paid twice and the cost is exact
    program   one agent program alone: the driver notices and tries again
    all       the driver, then everything it started, as when a machine is switched off
    mixed     now this, now that
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from crash import nothing_lost, runs
from crash.nothing_lost import Expected
from crash.person import LEDGER, Person
from raymond.store import home as homes
from raymond.store import journal
from raymond.store.project import Project
from raymond.system.cgroup import Cgroups

FLOW = Path(__file__).resolve().parent / "flow"
PATIENCE = 60.0
"""Seconds until something that does not come is called missing; nothing is measured with it."""
MODES = ("driver", "program", "all", "mixed")
ID = "r"
PLACES: list["Place"] = []
"""Every place of the test that runs now, to be cleared after it."""


class Ending(Struct):
    """How a command ended."""

    code: int
    out: str
    err: str


class Place:
    """A directory with one run, and the real command to drive it."""

    id = ID
    before: tuple[str, ...] = ()
    """What stands before every command, such as what limits it."""

    def __init__(self, folder: Path, home: Path | None = None, *, isolated: bool = False) -> None:
        self.room = folder / "room"
        self.project: Project = runs.project_in(self.room, home)
        self.person = Person(self.room, self.project.run(ID).workspace) if isolated else None
        """Where agents work in a workspace: who has the repository."""
        self.ledger = self.room / LEDGER if isolated else folder / "ledger"
        self.journal = Path(self.project.run(ID).journal)
        kept = {
            name: value
            for name, value in os.environ.items()
            if name == "RAYMOND_PORTABLE" or not name.startswith("RAYMOND")
        }
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        self.environment = {**kept, homes.VARIABLE: self.project.home.path, "LEDGER": str(self.ledger)}
        self._files = folder
        self.commands: list[Command] = []
        PLACES.append(self)

    def clear(self) -> None:
        """End whatever is left, so that a failing test leaves nothing behind."""
        for command in self.commands:
            command.kill()
        for pid in self.marked():
            end(pid)
        if os.path.exists(made := self.project.run(self.id).cgroups):
            until(lambda: not self.marked(), "the end of what was left")
            Cgroups(made).tidy()

    def start(self, *args: str, code: str = "") -> "Command":
        """A command that runs until it ends or is killed; with `code`, that is what starts it."""
        argv = [*self.before, sys.executable, *(["-c", code] if code else ["-m", "raymond"]), *args]
        number = len(self.commands)
        self.commands.append(Command(self, argv, self._files / f"{number}.out", self._files / f"{number}.err"))
        return self.commands[-1]

    def begin(self) -> "Command":
        """The run that is to be tortured."""
        args = ("--id", ID, "--input", "it", "--backend", "scripted-program", *self.way)
        return self.start("run", str(FLOW), *args)

    @property
    def way(self) -> tuple[str, ...]:
        """The flags that say where agents work."""
        return ("--workspace", "isolated") if self.person else ()

    def notes(self) -> str:
        """What scripts have noted."""
        if self.person:
            return self.person.read(LEDGER)
        return self.ledger.read_text("utf-8") if self.ledger.exists() else ""

    def resume(self, *args: str) -> "Command":
        """Take it up."""
        return self.start("resume", ID, *args)

    def lines(self) -> int:
        """How many lines the journal has."""
        try:
            return self.journal.read_bytes().count(b"\n")
        except FileNotFoundError:
            return 0

    def key(self) -> str:
        """What marks the processes of the run."""
        return journal.read(self.project.run(ID)).run.start.key

    def marked(self) -> list[int]:
        """The processes that carry the run's mark, and are no zombies."""
        if self.lines() < 2:
            return []
        needle = f"RAYMOND_STEP={self.key()}/".encode()
        return [pid for pid in pids() if needle in told(pid, "environ") and alive(pid)]

    def programs(self) -> list[int]:
        """The agent programs among them."""
        return [pid for pid in self.marked() if b"testing/fake_claude.py" in told(pid, "cmdline")]


class Command:
    """A command of Raymond in a process of its own."""

    def __init__(self, place: Place, argv: list[str], out: Path, err: Path) -> None:
        self._out, self._err = out, err
        with out.open("wb") as stdout, err.open("wb") as stderr:
            self.process = subprocess.Popen(
                argv,
                cwd=place.room,
                env=place.environment,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
            )

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    @property
    def has_spoken(self) -> bool:
        return self._err.stat().st_size > 0

    def has_said(self, text: str) -> bool:
        return text in self._err.read_text("utf-8")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def wait(self) -> Ending:
        code = self.process.wait(PATIENCE)
        return Ending(code, self._out.read_text("utf-8"), self._err.read_text("utf-8"))


def pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]


def told(pid: int, name: str) -> bytes:
    """What the kernel tells of a process; nothing when it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_bytes()
    return b""


def alive(pid: int) -> bool:
    """The process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def until(condition: Callable[[], Any], what: str) -> Any:
    """Wait for something to be true; what it is then."""
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, f"this never came: {what}"
        time.sleep(0.002)
    return found


# --- a round


class Round(Struct):
    """What was done to a run."""

    seed: int
    killed: list[str]
    """Whom, in order."""
    ending: Ending


def torture(place: Place, seed: int) -> Round:
    """Start a run, kill at chance moments, and let the last driver end it."""
    chance = random.Random(seed)
    mode = MODES[seed % len(MODES)]
    left = chance.randint(1, 3)
    killed: list[str] = []
    command = place.begin()
    while left and moment(place, command, chance):
        left -= 1
        killed.append(strike(place, command, chance.choice(MODES[:3]) if mode == "mixed" else mode, chance))
        journal.read(place.project.run(ID))  # readable after every kill, or this raises
        if command.ended:
            command = place.resume()
    return Round(seed, killed, command.wait())


def moment(place: Place, command: Command, chance: random.Random) -> bool:
    """Come to a moment of the run: some lines of the journal further, and a little later; False when it has ended."""
    target = max(place.lines(), 2) + chance.randint(0, 12)
    until(lambda: place.lines() >= target or command.ended, "another line of the journal")
    time.sleep(chance.choice((0, 0, 0.005, 0.02, 0.06)) * chance.random())
    return not command.ended


def strike(place: Place, command: Command, mode: str, chance: random.Random) -> str:
    """Kill."""
    if mode == "program":
        prey = place.programs()
        if prey:
            end(chance.choice(prey))
        return "program" if prey else "nobody"
    command.kill()
    if mode == "all":
        for pid in place.marked():
            end(pid)
    return mode


# --- the proof


def check(place: Place, done: Round, unbroken: Expected) -> None:
    """Nothing is lost, doubled, or left."""
    assert done.ending.code == 0, done.ending.err
    assert done.ending.out.strip() == unbroken.result.strip()
    only_drivers = "program" not in done.killed and "all" not in done.killed
    nothing_lost.check(place, unbroken, [done.ending], paid_once=only_drivers)


TALKS = {
    "START.md": ["START.md"],
    "WORK.md": ["WORK.md"],
    "CHECK.md": ["WORK.md", "CHECK.md"],
    "JOIN.md": ["START.md", "JOIN.md"],
    "CLOSE.md": ["START.md", "JOIN.md", "CLOSE.md"],
}
"""A callee sees its caller's conversation and nothing else."""


def unbroken(folder: Path, *, isolated: bool = False) -> Expected:
    """What the same run comes to with nobody in its way."""
    place = Place(folder, folder / "home", isolated=isolated)
    done = place.begin().wait()
    assert done.code == 0, done.err
    found = nothing_lost.expected(place)
    assert found.talks == TALKS
    check(place, Round(-1, [], done), found)
    nothing_lost.check_views(place)
    nothing_lost.check_clean(place)
    return found
