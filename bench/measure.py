"""Start a process, wait for it, and report what it cost, without any help from the process itself.

Linux keeps the resource usage of a process that has ended until its parent reaps it. So it is read exactly once,
complete and without the children of the process: the command measured is the one people type.
"""

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 180.0
"""Seconds after which anything measured here has failed."""
_TICKS = os.sysconf("SC_CLK_TCK")
_UNWANTED = ("PYTHON", "RAYMOND", "BASH_ENV", "CLICOLOR", "FORCE_COLOR")
"""Variables that would make the program differ from what people run; above all PYTHONDONTWRITEBYTECODE."""


class Failed(Exception):
    """A figure could not be measured."""


@dataclass(frozen=True)
class Cost:
    """What one process used, without its children."""

    code: int
    wall: float
    cpu: float
    """Seconds, user and system."""
    wrote: int
    """Bytes given to write()."""
    peak: int
    """Bytes of memory; 0 when nobody asked."""


class Child:
    """A running process: its output goes to files, and its end is waited for with `end`."""

    def __init__(self, argv: list[str], cwd: Path, *, name: str = "child") -> None:
        self.out, self.err = cwd / f"{name}.out", cwd / f"{name}.err"
        self._argv = argv
        self._peak = 0
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.began = time.monotonic()
            self._process = subprocess.Popen(
                argv, cwd=cwd, env=environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=err
            )
        self.pid = self._process.pid
        self.fd = os.pidfd_open(self.pid)
        """Becomes readable when the process ends."""

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.returncode is None:
            self._process.kill()
            self._process.wait()
        os.close(self.fd)

    def end(self, number: int = 0, *, within: float = PATIENCE) -> Cost:
        """Send the signal, if one is given, and wait for the end."""
        if number:
            os.kill(self.pid, number)
        if not self._ended(within):
            raise Failed(f"{self} did not end within {within:.0f} s")
        ended = time.monotonic()
        cpu, wrote = _cpu(self.pid), self.wrote()
        return Cost(self._process.wait(), ended - self.began, cpu, wrote, self._peak)

    def end_watched(self, number: int) -> Cost:
        """Like `end`, with the peak of memory until the end."""
        self.note_peak()
        os.kill(self.pid, number)
        deadline = time.monotonic() + PATIENCE
        while not self._ended(0.002) and time.monotonic() < deadline:
            self.note_peak()
        return self.end(within=0.0)

    def wait_until(self, happened: Callable[[], bool], what: str, *, within: float = 60.0) -> None:
        """Check every 50 ms; the process must not end before."""
        deadline = time.monotonic() + within
        while not happened():
            if self._ended(0.05):
                raise Failed(f"{self} ended before {what}: {self.last_words()}")
            if time.monotonic() > deadline:
                raise Failed(f"{self}: no {what} within {within:.0f} s")

    def note_peak(self) -> None:
        """Remember the peak of memory so far."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                self._peak = max(self._peak, int(line.split()[1]) * 1024)

    def wrote(self) -> int:
        """Bytes given to write() so far."""
        return int(Path(f"/proc/{self.pid}/io").read_text().split("wchar:")[1].split()[0])

    def last_words(self) -> str:
        """The last lines of its stderr."""
        return " / ".join(self.err.read_text(errors="replace").splitlines()[-3:])

    def _ended(self, within: float) -> bool:
        return bool(select.select([self.fd], [], [], within)[0])

    def __str__(self) -> str:
        return " ".join(Path(word).name if "/" in word else word for word in self._argv)[:60]


def run(argv: list[str], cwd: Path, *, within: float = PATIENCE) -> Cost:
    """Run a command that must succeed. Earlier writes are synced first, so that they are not counted."""
    os.sync()
    with Child(argv, cwd) as child:
        cost = child.end(within=within)
        if cost.code != 0:
            raise Failed(f"{child} ended with {cost.code}: {child.last_words()}")
        return cost


def environment() -> dict[str, str]:
    """The environment of everything measured."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_UNWANTED)}


def _cpu(pid: int) -> float:
    # The first is exact but covers one thread; the second rounds down but covers all of them.
    exact = int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return max(exact, (int(fields[11]) + int(fields[12])) / _TICKS)


def foreign_cpu() -> float:
    """Seconds of CPU used by everything except the benchmark since the machine started."""
    user, nice, system, _, _, irq, soft = map(int, Path("/proc/stat").read_text().split()[1:8])
    mine = os.times()
    return (user + nice + system + irq + soft) / _TICKS - sum(mine[:4])


def interrupted(code: int) -> bool:
    """Whether the command ended because of SIGTERM, with its own exit code or by the signal."""
    return code in (128 + signal.SIGTERM, -signal.SIGTERM)
