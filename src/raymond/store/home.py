"""RAYMOND_HOME: the folder outside of all projects that holds the runs of one person."""

import os
import stat
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from raymond.errors import UsageError
from raymond.system import files
from raymond.system.files import make_private
from raymond.text import is_text

VARIABLE = "RAYMOND_HOME"
_OUT = f"set {VARIABLE} to a folder of your own, outside of your projects"
UNPACKED = "work"
"""The folder that workflows are unpacked to for their scripts."""


class Inside:
    """What a folder has under a name; read from that folder, it is its path."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, folder: Any, _: object) -> str:
        return f"{folder.path}/{self._name}"


class Home(Struct, frozen=True):
    """The folder and what is directly in it."""

    path: str

    projects = Inside("projects")
    """A folder for each project."""
    sources = Inside("sources")
    """The snapshots of workflows, each named for its digest."""
    work = Inside(UNPACKED)
    """Unpacked workflows, each named for its digest."""

    def make(self) -> None:
        """Create what is missing."""
        for folder in (self.projects, self.sources, self.work):
            _check_folder(folder)
            try:
                make_private(folder, durable=True)
            except OSError as error:
                raise unusable(folder, f"cannot be created: {(error.strerror or '').lower()}") from None
        _check(self.path)


def find(environment: Mapping[str, str] = os.environ) -> Home:
    """The home of this person, whether or not it exists yet; refused when it is not theirs alone."""
    path = environment.get(VARIABLE) or _default(environment)
    if not path:
        raise UsageError(f"there is no place for runs: neither {VARIABLE} nor HOME is set", hint=_OUT)
    if not os.path.isabs(path):
        raise UsageError(f"{VARIABLE}={path} is not an absolute path", hint=_OUT)
    above, name = os.path.split(os.path.normpath(path))
    path = os.path.join(os.path.realpath(above), name)  # steps in a workspace find it where it is
    if not is_text(path):
        raise unusable(path, "is not UTF-8")
    _check(path)
    return Home(path)


def _default(environment: Mapping[str, str]) -> str:
    base = environment.get("XDG_STATE_HOME", "")
    if os.path.isabs(base):
        return f"{base}/raymond"
    home = environment.get("HOME", "")
    return f"{home}/.local/state/raymond" if home else ""


def _check(path: str) -> None:
    """Everything that decides lies there: nobody else may be able to change it."""
    mode = stat.S_IMODE(_check_folder(path))
    if mode & 0o077:
        raise UsageError(
            f"runs cannot be kept in {path} ({VARIABLE}): it is open to other users", hint=_closed(path, mode)
        )


def _closed(path: str, mode: int) -> str:
    """What to do about a folder of one's own that is open to others; one that holds something else stays as it is."""
    is_meant = os.path.basename(path) == "raymond" or os.path.isdir(f"{path}/projects")
    if is_meant or (mode & 0o400 and not os.listdir(path)):
        return f"chmod 700 {path}, or {_OUT}"
    return _OUT if mode & 0o022 else f"set {VARIABLE} to {path}/raymond, which is made for you alone"


def _check_folder(path: str) -> int:
    """The mode of a folder that is a person's own; 0 when it does not exist yet."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise unusable(path, f"cannot be reached: {(error.strerror or '').lower()}") from None
    if stat.S_ISLNK(found.st_mode):
        hint = f"name the folder itself: {VARIABLE}={os.path.realpath(path)}"
        raise UsageError(f"runs cannot be kept in {path} ({VARIABLE}): it is a link", hint=hint)
    if not stat.S_ISDIR(found.st_mode):
        raise unusable(path, "is not a folder")
    if found.st_uid != os.geteuid():
        raise unusable(path, f"belongs to {files.owner_name(found.st_uid)}")
    return found.st_mode


def unusable(path: str, why: str) -> UsageError:
    """The error for a home that cannot be used."""
    return UsageError(f"runs cannot be kept in {path} ({VARIABLE}): it {why}", hint=_OUT)
