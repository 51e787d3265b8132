"""A place on a machine that is short of something, or whose clock is set."""

import contextlib
import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from random import Random

from crash.torture import Command, Place, alive, pids, told

_DISK = 4 << 20
_CLOCK = """
import os, time
from time import time as right
time.time = lambda: right() + float(open(os.environ["CLOCK"]).read())
from raymond.__main__ import main
main()
"""
"""Raymond with a clock that a file sets. Nobody may set the real one here, and libfaketime breaks Python's sleep."""


class Machine(Place):
    """The place, with a home of its own; `condition` is one of trouble.CONDITIONS, or empty."""

    def __init__(self, folder: Path, flow: Path, condition: str, chance: Random, *, isolated: bool = False) -> None:
        self._home = folder / "home"
        self._home.mkdir(mode=0o700)
        self.condition = condition
        self.disk = condition == "disk" and _mount(self._home)
        super().__init__(folder, self._home, isolated=isolated)
        self._flow = flow
        self._chance = chance
        self._clock = folder / "clock"
        self._mark = f"0.0{os.getpid()}{chance.randrange(10**9)}"
        self._limits: list[str] = []
        self.program = chance.random() < 0.5 and condition not in ("disk", "clock")
        # Inside, every step has its own /tmp, and makes its own.
        pause = Path("/tmp/pause") if isolated else folder / "pause"
        if not isolated:
            os.mkfifo(pause)
        self.environment |= {"PAUSE": str(pause), "MARK": self._mark}
        self._prepare(folder)

    def _prepare(self, folder: Path) -> None:
        chance = self._chance
        match self.condition:
            case "portable":
                self.environment["RAYMOND_PORTABLE"] = "1"
            case "clock":
                self.set_clock(0)
                self.environment["CLOCK"] = str(self._clock)
            case "descriptors":
                self._limits = [f"ulimit -n {chance.randint(16, 40)}"]
            case "disk" if not self.disk:
                self._limits = [f"ulimit -f {chance.randint(12, 24)}"]
            case "processes":
                self._limits = [f"ulimit -u {chance.randint(1, 5)}"]
                user = 20_000 + os.getpid() % 30_000
                for path in (folder, *folder.rglob("*")):
                    os.chown(path, user, user)
                # With this capability it may read the checkout wherever that is, and is limited all the same.
                may = "+dac_read_search"
                to = (
                    f"--reuid={user}",
                    f"--regid={user}",
                    "--clear-groups",
                    f"--inh-caps={may}",
                    f"--ambient-caps={may}",
                )
                self.before = ("setpriv", *to, "--")
            case _:
                pass

    def start(self, *args: str, code: str = "") -> Command:
        return super().start(*args, code=code or (_CLOCK if self.condition == "clock" else ""))

    @property
    def is_limited(self) -> bool:
        return bool(self._limits)

    def calm(self) -> None:
        """From now on the machine is as it should be; a clock that was set stays so."""
        self._limits = []
        self.free_disk()

    def begin(self) -> Command:
        backend = "scripted-program" if self.program else "scripted"
        args = ("--id", self.id, "--input", "it", "--backend", backend, "--budget", "0", *self.way)
        return self._drive("run", str(self._flow), *args)

    def resume(self, *args: str) -> Command:
        return self._drive("resume", self.id, *args)

    def _drive(self, *args: str) -> Command:
        before = self.before
        if self._limits:
            self.before = (*before, "bash", "-c", f'{self._limits[0]}; exec "$@"', "limited")
        try:
            return self.start(*args)
        finally:
            self.before = before

    def marked(self) -> list[int]:
        """Everything that was started here and still runs, whatever it has done with its environment."""
        environ, mark = f"LEDGER={self.ledger}\0".encode(), self._mark.encode()
        found = [pid for pid in pids() if environ in told(pid, "environ") or mark in told(pid, "cmdline")]
        # A verifier has nothing of the environment but its mark.
        return [pid for pid in {*found, *super().marked()} if alive(pid)]

    def set_clock(self, seconds: int) -> None:
        """Set the clock to so many seconds beside the right time."""
        aside = self._clock.with_suffix(".new")
        aside.write_text(f"{seconds:+d}\n")
        os.replace(aside, self._clock)

    def fill_disk(self, but: int) -> None:
        """Leave `but` bytes of room on the disk."""
        if self.disk:
            room = os.statvfs(self._home)
            with contextlib.suppress(OSError), (self._home / "filler").open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, max(1, room.f_bavail * room.f_frsize - but))

    def free_disk(self) -> None:
        (self._home / "filler").unlink(missing_ok=True)

    def clear(self) -> None:
        super().clear()
        if self.disk:
            kept = self._home.with_name("home.kept")
            shutil.copytree(self._home, kept, symlinks=True, ignore=shutil.ignore_patterns("socket"))
            subprocess.run(["umount", "-l", str(self._home)], check=False)
            self.disk = False


def _mount(folder: Path) -> bool:
    """Mount a small disk there; False where that is not allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    return not libc.mount(b"torture", os.fsencode(folder), b"tmpfs", 0, f"size={_DISK},mode=700".encode())
