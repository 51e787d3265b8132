"""Requests to a run that another process drives: one file each, written under another name and then renamed."""

import contextlib
import os
from collections.abc import Iterator

import msgspec

from raymond import errors
from raymond.machine.requests import Request
from raymond.patterns import regex
from raymond.system import files

_ID = regex(r"[A-Za-z0-9._-]{1,64}")
"""What is in the journal of every request, so it must not be whatever somebody wants to have there."""
MOST_BYTES = 1 << 20
"""Bytes of a request; nobody asks for more."""


def leave(folder: str, request: Request) -> str:
    """Put `request` where the holder of the lock looks once a second; returns the path of its file."""
    files.guard(folder, lambda: files.make_private(folder))
    path = f"{folder}/{request.id}.json"
    files.replace(path, msgspec.json.encode(request), durable=True)
    return path


def pending(folder: str) -> Iterator[tuple[str, Request | None]]:
    """Every request with the path of its file, the oldest first; None for one that cannot be read.

    What cannot be looked at, for want of descriptors or because of something in the way, may be there at the next look.
    A link in place of the folder is such a thing: what lies behind it is not Raymond's to put aside or remove.
    """
    if os.path.islink(folder):
        return
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".json")]
    except OSError:
        return
    for path in sorted((f"{folder}/{name}" for name in names), key=_age):
        try:
            yield path, _read(path)
        except FileNotFoundError:
            continue
        except (msgspec.DecodeError, OSError) as error:
            if not errors.is_passing_fault(error):
                yield path, None


def _read(path: str) -> Request | None:
    data = files.contents(path, MOST_BYTES + 1)
    return decode(data) if len(data) <= MOST_BYTES else None


def decode(data: bytes) -> Request | None:
    """A request, whoever wrote it; None when it is none."""
    try:
        request = msgspec.json.decode(data, type=Request)
    except (ValueError, RecursionError):  # ValueError: also text that is not UTF-8
        return None
    return request if _ID.fullmatch(request.id) else None


def _age(path: str) -> tuple[int, str]:
    try:
        return os.lstat(path).st_mtime_ns, path
    except OSError:
        return 0, path


def put_aside(path: str, why: str) -> str:
    """Give what is not taken another name, since any step may have put it there; empty when it has to stay there."""
    folder, name = os.path.split(path)
    kept = [name] if _ID.fullmatch(name) else []
    for new in (*kept, os.urandom(8).hex()):
        with contextlib.suppress(OSError):
            os.rename(path, f"{folder}/{new}.{why}")
            return f"{folder}/{new}.{why}"
    return ""


def remove(path: str) -> None:
    """Remove the file of a request that was journaled; one that stays there is not taken twice."""
    with contextlib.suppress(OSError):
        os.unlink(path)
