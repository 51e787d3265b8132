"""One turn of a backend outside any run: for `doctor --probe`, and for authors of backends."""

import os
import signal
import tempfile
import time
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from raymond.backends import Backend, Observation, Reply, Trouble, Turn
from raymond.system.files import private
from raymond.system.processes import signal_group, spawn

LOOK_EVERY = 0.02
LINGER = 2.0


def turn(prompt: str, *, cwd: str, session: str, base: str = "", **more: object) -> Turn:
    """A turn that belongs to no run."""
    fields = {"agent": "main", "state": "TRIAL.md", "visit": 1, "tries": 0, "spool": "", **more}
    return Turn(prompt=prompt, cwd=cwd, session=session, base=base, **fields)  # type: ignore[arg-type]


def take(
    backend: Backend,
    one: Turn,
    *,
    environment: Mapping[str, str] = os.environ,
    patience: float = 120.0,
    see: Callable[[list[Observation]], None] = lambda seen: None,
) -> Reply | Trouble:
    """Start the program for `one`, read what it prints, and stop it after its result or after `patience` seconds."""
    with tempfile.TemporaryDirectory(prefix="raymond-") as spool:
        one = replace(one, spool=spool)
        try:
            pid = _start(backend, one, environment)
        except OSError as error:
            return Trouble(kind="setup", error=f"it cannot be started: {(error.strerror or '').lower()}")
        reader = backend.reader(one)
        ended = None
        try:
            ended = _read(reader.feed, see, spool, pid, patience, lambda: reader.ending is not None)
        finally:
            # Leave nothing running that could cost money: neither the program nor what it started.
            if ended is None:
                _end(pid)
            signal_group(pid, signal.SIGKILL)
        if ended is None and reader.ending is None:
            return Trouble(kind="silent", error=f"no answer within {patience:g}s", spent=reader.spent())
        with open(os.path.join(spool, "err"), "rb") as file:
            errors = file.read()[-4096:].decode("utf-8", "replace")
        return reader.ending or reader.close(ended, errors)


def _start(backend: Backend, one: Turn, environment: Mapping[str, str]) -> int:
    command = backend.command(one)
    for name, data in {**command.files, "prompt": one.prompt.encode()}.items():
        with open(os.path.join(one.spool, name), "wb", opener=private) as file:
            file.write(data)
    given = {name: value for name, value in environment.items() if name not in command.without} | command.environment
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    out, err = (os.open(os.path.join(one.spool, name), flags, 0o600) for name in ("out", "err"))
    here = os.getcwd()
    try:
        env = {os.fsencode(name): os.fsencode(value) for name, value in given.items()}
        return spawn(command.argv, env, one.cwd, stdin=os.path.join(one.spool, "prompt"), stdout=out, stderr=err)
    finally:
        os.chdir(here)  # `spawn` changes to the directory of the process, and this one may be deleted soon
        os.close(out)
        os.close(err)


def _read(
    feed: Callable[[bytes], list[Observation]],
    see: Callable[[list[Observation]], None],
    spool: str,
    pid: int,
    patience: float,
    is_over: Callable[[], bool],
) -> int | None:
    """Feed every line until the process ends; its exit code, or None when it still runs after `patience` seconds."""
    deadline, rest = time.monotonic() + patience, b""
    with open(os.path.join(spool, "out"), "rb") as out:
        while True:
            gone, status = os.waitpid(pid, os.WNOHANG)
            *lines, rest = (rest + out.read()).split(b"\n")
            for line in lines:
                see(feed(line))
            if gone:
                if rest and not is_over():
                    see(feed(rest))
                return os.waitstatus_to_exitcode(status)
            if is_over():
                deadline = min(deadline, time.monotonic() + LINGER)
            if time.monotonic() >= deadline:
                return None
            time.sleep(LOOK_EVERY)


def _end(pid: int) -> None:
    signal_group(pid, signal.SIGTERM)
    until = time.monotonic() + LINGER
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() >= until:
            signal_group(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return
        time.sleep(LOOK_EVERY)
