"""A process that keeps starting itself anew, in a session of its own, and ends; one of it at a time."""

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

LONGEST = 30.0
"""Seconds after which it gives up by itself, whatever becomes of the test."""
HOPPER = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
gap, stop, end = float(sys.argv[1]), sys.argv[2], time.monotonic() + float(sys.argv[3])
hops = 0
while time.monotonic() < end and not os.path.exists(stop):
    if os.fork():
        os._exit(0)
    os.setsid()
    hops += 1
    if hops == 20:
        open(stop + ".hops", "x").close()
    time.sleep(gap)
"""


def command(stop: Path, gap: float) -> list[str]:
    """What starts one; it ends when there is a file `stop`."""
    return [sys.executable, "-SIc", HOPPER, str(gap), str(stop), str(LONGEST)]


def has_hopped(stop: Path) -> bool:
    return Path(f"{stop}.hops").exists()


class Hopper:
    """One that runs, and the pipe that it holds open wherever it is."""

    def __init__(self, stop: Path, gap: float, env: Mapping[str, str] | None = None) -> None:
        self._stop = stop
        self._pipe, held = os.pipe()
        subprocess.run(["sh", "-c", '"$@" &', "sh", *command(stop, gap)], stdout=held, env=env, check=True)
        os.close(held)

    @property
    def has_hopped(self) -> bool:
        return has_hopped(self._stop)

    def is_gone(self, within: float = 0.0) -> bool:
        return bool(select.select([self._pipe], [], [], within)[0])

    def end(self) -> None:
        self._stop.touch()
        gone = self.is_gone(LONGEST + 1)
        os.close(self._pipe)
        assert gone


@contextmanager
def hopper(stop: Path, gap: float, env: Mapping[str, str] | None = None) -> Iterator[Hopper]:
    """One that has hopped, and surely ends."""
    made = Hopper(stop, gap, env)
    try:
        until = time.monotonic() + LONGEST
        while not made.has_hopped and time.monotonic() < until:
            time.sleep(0.001)
        assert made.has_hopped
        yield made
    finally:
        made.end()
