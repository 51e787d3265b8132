"""The versions of agents' programs, remembered by path, size and time of change: asking one takes a while."""

import contextlib
import os

import msgspec

from raymond.errors import Error
from raymond.store import home
from raymond.system import files, programs

NAME = "versions.json"
_MOST = 1 << 20


def checked(path: str, title: str, oldest: tuple[int, ...], without: tuple[str, ...]) -> tuple[str, str]:
    """The version of a program, and why it cannot be used when it tells none or is too old."""
    mark, known = _mark(path), _known()
    said = known.get(path, {}).get(mark, "")
    if not said:
        said, problem = programs.version(path, without)
        if problem:
            return said, problem
        _keep(known | {path: {mark: said}})
    return said, programs.too_old(path, said, title, oldest)


def forget() -> None:
    """Ask every program anew: for whoever wants to know what is true now."""
    with contextlib.suppress(OSError, Error):
        os.unlink(_file())


def _mark(path: str) -> str:
    found = os.stat(path)
    return f"{os.path.realpath(path)} {found.st_ino} {found.st_size} {found.st_mtime_ns}"


def _file() -> str:
    return f"{home.find().path}/{NAME}"


def _known() -> dict[str, dict[str, str]]:
    """Path -> what the file was like -> what it said."""
    try:
        return msgspec.json.decode(files.contents(_file(), _MOST), type=dict[str, dict[str, str]])
    except (OSError, msgspec.DecodeError, Error):
        return {}


def _keep(known: dict[str, dict[str, str]]) -> None:
    """Only a cache: where it cannot be written, the program is asked again."""
    with contextlib.suppress(OSError, Error):
        if os.path.isdir(os.path.dirname(_file())):
            files.replace(_file(), msgspec.json.encode(known))
