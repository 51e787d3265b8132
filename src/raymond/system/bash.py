"""What bash thinks of scripts, without running them."""

import contextlib
import os
import re
import select
import signal
import time
from collections.abc import Iterable, Iterator, Mapping

from raymond.system import processes

PATIENCE = 2.0
"""Seconds for all scripts together; what takes longer is not reported."""
_AT_ONCE = 16
_MOST = 4096


def verdicts(texts: Mapping[str, str]) -> dict[str, str]:
    """What `bash -n` says about each script, empty for one that is well; each is read by a process of its own.

    Nothing, when the machine has no room for that: a start must not fail for want of an opinion.
    """
    program = processes.program("bash")
    if not texts or not os.path.isabs(program):
        return {}
    until, found = time.monotonic() + PATIENCE, dict[str, str]()
    names = list(texts)
    for at in range(0, len(names), _AT_ONCE):
        if time.monotonic() >= until:
            break
        try:
            found |= _ask(program, {name: texts[name] for name in names[at : at + _AT_ONCE]}, until)
        except OSError:
            break
    return found


def _ask(program: str, texts: Mapping[str, str], until: float) -> dict[str, str]:
    asked: dict[str, tuple[int, int]] = {}
    heard: dict[str, str] = {}
    try:
        for name, text in texts.items():
            asked[name] = _start(program, text)
        for name, (_, reader) in asked.items():
            said = _hear(reader, until)
            if said is not None:
                heard[name] = said
    finally:
        for pid, reader in asked.values():
            os.close(reader)
            processes.signal_group(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
    return heard


def _start(program: str, text: str) -> tuple[int, int]:
    """A bash that reads `text`, in an empty environment; its pid and where its complaints come."""
    script = _file(text)
    try:
        reader, writer = os.pipe()
    except OSError:
        os.close(script)
        raise
    try:
        actions = [
            (os.POSIX_SPAWN_DUP2, script, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, writer, 2),
        ]
        pid = os.posix_spawn(program, ["bash", "-n"], {"LC_ALL": "C.UTF-8"}, file_actions=actions, setsid=True)
    except BaseException:
        os.close(reader)
        raise
    finally:
        os.close(writer)
        os.close(script)
    return pid, reader


def _file(text: str) -> int:
    """A file without a name, which bash reads faster than a pipe."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("script", os.MFD_CLOEXEC)
    else:
        import tempfile

        fd, path = tempfile.mkstemp()
        os.unlink(path)
    try:
        data = text.encode("utf-8", "surrogateescape")
        while data:
            data = data[os.write(fd, data) :]
        os.lseek(fd, 0, os.SEEK_SET)
    except OSError:
        os.close(fd)
        raise
    return fd


def _hear(reader: int, until: float) -> str | None:
    """What it says; None when that takes too long."""
    said = b""
    while len(said) < _MOST:
        if not select.select([reader], (), (), max(until - time.monotonic(), 0.0))[0]:
            return None
        data = os.read(reader, _MOST)
        if not data:
            break
        said += data
    return said.decode("utf-8", "replace")


def places(said: str) -> Iterator[tuple[int, str]]:
    """The line and the message of each complaint."""
    for line in said.splitlines():
        _, _, rest = line.partition(": line ")
        number, _, message = rest.partition(": ")
        if number.isdigit() and not message.startswith("`"):
            opened = re.search(r"here-document at line (\d+)", message)
            yield int(opened[1] if opened else number), message.removeprefix("warning: ")


def is_for_bash(text: str) -> bool:
    """Whether a script names no other interpreter in its first line."""
    first: Iterable[str] = text.partition("\n")[0].replace("/", " ").split()
    return not text.startswith("#!") or any(word in ("bash", "sh", "dash") for word in first)
