"""Requests to a run that another process drives: one file each, written under another name and then renamed."""

import os
from collections.abc import Iterator

import msgspec

from raymond.machine.requests import Request
from raymond.system.files import write_all


def leave(folder: str, request: Request) -> str:
    """Put `request` where the holder of the lock looks once a second; returns the path of its file."""
    os.makedirs(folder, 0o700, exist_ok=True)
    aside = os.path.join(folder, f".{request.id}")
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        write_all(fd, msgspec.json.encode(request))
        os.fsync(fd)
    finally:
        os.close(fd)
    path = os.path.join(folder, f"{request.id}.json")
    os.rename(aside, path)
    return path


def look(folder: str) -> Iterator[tuple[str, Request | None]]:
    """Every request with the path of its file, the oldest first; None for one that cannot be read."""
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".json")]
    except FileNotFoundError:
        return
    for path in sorted((os.path.join(folder, name) for name in names), key=_age):
        try:
            with open(path, "rb") as file:
                yield path, msgspec.json.decode(file.read(), type=Request)
        except FileNotFoundError:
            continue
        except (msgspec.DecodeError, OSError):
            yield path, None


def _age(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except FileNotFoundError:
        return 0.0


def remove(path: str) -> None:
    """Remove the file of a request that was journaled."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
