"""The versions of agents' programs, remembered by path, size and times of change: asking one takes a while.

A script, or a program too small to be one of these, only starts another, which can change without it: what it said
counts for a few minutes.
"""

import contextlib
import os
import time

import msgspec

from raymond.errors import Error
from raymond.store import home
from raymond.system import files, programs

NAME = "versions.json"
_MOST = 1 << 20
_SMALL = 1 << 20
"""Bytes; Claude Code and Codex have more."""
_SECONDS = 600
"""For which one counts that only starts another."""
_ASKED = "asked"


def checked(path: str, title: str, oldest: tuple[int, ...], without: tuple[str, ...]) -> tuple[str, str]:
    """The version of a program, and why it cannot be used when it tells none or is too old."""
    mark, known = _mark(path), _known()
    said = _remembered(path, known.get(path, {}), mark)
    if not said:
        said, problem = programs.version(path, without)
        if problem:
            return said, problem
        _keep(known | {path: {mark: said, _ASKED: str(int(time.time()))}})
    return said, programs.too_old(path, said, title, oldest)


def forget() -> None:
    """Ask every program anew: for whoever wants to know what is true now."""
    with contextlib.suppress(OSError, Error):
        os.unlink(_file())


def _mark(path: str) -> str:
    found = os.stat(path)
    return f"{os.path.realpath(path)} {found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"


def _remembered(path: str, kept: dict[str, str], mark: str) -> str:
    """What the program said, if that still counts."""
    said = kept.get(mark, "")
    if not said or not _starts_another(path):
        return said
    asked = kept.get(_ASKED, "")
    return said if asked.isdecimal() and 0 <= time.time() - int(asked) < _SECONDS else ""


def _starts_another(path: str) -> bool:
    with contextlib.suppress(OSError), open(path, "rb") as opened:
        return os.fstat(opened.fileno()).st_size < _SMALL or opened.read(2) == b"#!"
    return True


def _file() -> str:
    return f"{home.find().path}/{NAME}"


def _known() -> dict[str, dict[str, str]]:
    """Path -> what the file was like -> what it said; and when it was asked."""
    try:
        return msgspec.json.decode(files.contents(_file(), _MOST), type=dict[str, dict[str, str]])
    except (OSError, msgspec.DecodeError, Error):
        return {}


def _keep(known: dict[str, dict[str, str]]) -> None:
    """Only a cache: where it cannot be written, the program is asked again."""
    with contextlib.suppress(OSError, Error):
        if os.path.isdir(os.path.dirname(_file())):
            files.replace(_file(), msgspec.json.encode(known))
