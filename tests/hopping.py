"""A process that keeps starting itself anew, in a session of its own: one at a time, or a line of them below each other."""

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
LINE = """
import os, mmap, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
gap, stop, end = float(sys.argv[1]), sys.argv[2], time.monotonic() + float(sys.argv[3])
shared = memoryview(mmap.mmap(-1, 400_000)).cast("i")
shared[0] = mine = 1
if os.fork():
    os._exit(0)

def is_over():
    return time.monotonic() >= end or os.path.exists(stop)

def is_gone(pid, number=0):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return True

while not is_over() and mine < len(shared) - 1:
    os.setsid()
    shared[mine], born = os.getpid(), time.monotonic()
    while mine - shared[0] > 60:
        is_gone(shared[shared[0]], 9)
        shared[0] += 1
    if mine == 70:
        open(stop + ".hops", "x").close()
    while time.monotonic() < born + gap:
        while shared[0] < mine and is_gone(shared[shared[0]]):
            shared[0] += 1
        if mine - shared[0] < 50:
            break
    if os.fork():
        while not is_over():
            time.sleep(0.03)
        os._exit(0)
    mine += 1
"""
"""The last of a line goes on; it does so faster while others of the line are killed, and the first make room."""


def command(stop: Path, gap: float, script: str = HOPPER) -> list[str]:
    """What starts one; it ends when there is a file `stop`."""
    return [sys.executable, "-SIc", script, str(gap), str(stop), str(LONGEST)]


def has_hopped(stop: Path) -> bool:
    return Path(f"{stop}.hops").exists()


class Hopper:
    """One that runs, and the pipe that it holds open wherever it is."""

    def __init__(self, stop: Path, gap: float, env: Mapping[str, str] | None, script: str) -> None:
        self._stop = stop
        self._pipe, held = os.pipe()
        subprocess.run(["sh", "-c", '"$@" &', "sh", *command(stop, gap, script)], stdout=held, env=env, check=True)
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
def hopper(stop: Path, gap: float, env: Mapping[str, str] | None = None, script: str = HOPPER) -> Iterator[Hopper]:
    """One that has hopped, and surely ends."""
    made = Hopper(stop, gap, env, script)
    try:
        until = time.monotonic() + LONGEST
        while not made.has_hopped and time.monotonic() < until:
            time.sleep(0.001)
        assert made.has_hopped
        yield made
    finally:
        made.end()
