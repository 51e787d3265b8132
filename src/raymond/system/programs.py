"""The agents' programs on this machine: where they are, which version, whether they can be used."""

import os
import re
import select
import signal
import time

from raymond import errors
from raymond.system import processes

PATIENCE = 10.0
"""Seconds that a program has to print its version."""


def locate(name: str) -> tuple[str, str]:
    """The path of a program, and what is wrong with it; empty when it can be started."""
    path = processes.program(name)
    if "/" not in name and (path == name or not os.access(path, os.X_OK)):
        processes.program.cache_clear()  # it may have been installed, or moved, since somebody looked for it
        path = processes.program(name)
    if os.path.isabs(path):
        usable = os.access(path, os.X_OK) and os.path.isfile(path)
        return (path, "") if usable else (path if os.path.exists(path) else "", _unusable(path))
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        beside = os.path.join(folder, name)
        if os.path.isfile(beside):
            return beside, _unusable(beside)
    return "", f"there is no program `{name}` on the PATH"


def _unusable(path: str) -> str:
    if not os.path.exists(path):
        return f"there is no program {path}"
    return f"{path} is a directory" if os.path.isdir(path) else f"{path} is not executable: chmod +x {path}"


def version(path: str, without: tuple[str, ...] = ()) -> tuple[str, str]:
    """The version that a program prints, and what is wrong when it prints none.

    OSError: the machine cannot start anything at the moment.
    """
    reader, writer = os.pipe()
    nobody = os.open(os.devnull, os.O_WRONLY)  # stderr may have warnings, which are not the version
    try:
        env = {name: value for name, value in os.environb.items() if os.fsdecode(name) not in without}
        pid = processes.spawn([path, "--version"], env, os.getcwd(), stdout=writer, stderr=nobody)
    except OSError as error:
        os.close(reader)
        if errors.is_passing_fault(error):
            raise
        return "", f"{path} cannot be started: {(error.strerror or '').lower()}"
    finally:
        os.close(writer)
        os.close(nobody)
    heard = _hear(reader)
    processes.signal_group(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    if heard is None:
        return "", f"{path} did not print its version within {PATIENCE:g}s"
    said = heard.decode("utf-8", "replace").strip().partition("\n")[0]
    return (said, "") if numbers(said) else ("", f"{path} did not print its version but: {said[:100] or 'nothing'}")


def _hear(reader: int) -> bytes | None:
    """What a program writes until the end of a line or of the program; None when that takes too long."""
    until, heard = time.monotonic() + PATIENCE, b""
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        while len(heard) < 4096 and b"\n" not in heard:
            if not select.select([pipe], (), (), max(until - time.monotonic(), 0.0))[0]:
                return None
            data = pipe.read(4096)
            if not data:
                break
            heard += data
    return heard


def too_old(path: str, said: str, title: str, oldest: tuple[int, ...]) -> str:
    """Why a program that said this version cannot be used; empty when it can."""
    if numbers(said) >= oldest:
        return ""
    found = next(word for word in said.split() if numbers(word))
    return f"{path} is {title} {found}; Raymond needs {'.'.join(map(str, oldest))} or later"


def way_out(path: str, said: str, update: str) -> str:
    """What to do about a program that cannot be used: an update helps one that is too old, and so said its version."""
    return update if said else f"see what it does: {path} --version"


def numbers(said: str) -> tuple[int, ...]:
    """The version in a text, as numbers that can be compared; empty when there is none."""
    found = re.search(r"\d+(?:\.\d+)+", said)
    return tuple(map(int, found[0].split("."))) if found else ()
