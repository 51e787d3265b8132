"""A project: a directory that people work in, and the folder outside of it that holds its runs."""

import contextlib
import os
from collections.abc import Iterator
from functools import lru_cache
from time import time

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from raymond.digests import sha256
from raymond.errors import UsageError
from raymond.store import home as homes
from raymond.store.home import Home
from raymond.store.run_folder import ID_FORM, JOURNAL, RunFolder
from raymond.system import files, folders, git
from raymond.system.files import make_private

_ABOUT = "project.json"
OFTEN = 3600.0
"""Seconds after a use within which another one is not noted."""


class About(Struct, kw_only=True, omit_defaults=True):
    """What is known of a project: the content of project.json."""

    path: str
    root_commit: str = ""
    """Shows that a repository at another path is the same one."""
    first_use: float = 0.0
    last_use: float = 0.0


class Project(Struct, frozen=True):
    """A directory and the folder of its runs."""

    home: Home
    tree: str
    """The real path of the directory: the top level of a repository, or where a run was started."""

    @property
    def root(self) -> str:
        """The folder of its runs."""
        return f"{self.home.projects}/{_folder_name(self.tree)}"

    @property
    def runs(self) -> str:
        """A folder for each run."""
        return f"{self.root}/runs"

    @property
    def holds_home(self) -> bool:
        """Whether its runs are kept inside of it, where its agents work."""
        return f"{self.home.path}/".startswith(f"{self.tree.rstrip('/')}/")

    def run(self, id: str) -> RunFolder:
        """The folder of a run."""
        return RunFolder(self.home, f"{self.runs}/{id}", id)

    def make(self) -> None:
        """Create what is missing, and note that the project is used."""
        self.home.make()
        if not os.access(self.home.projects, os.W_OK):
            raise homes.unusable(self.home.path, "cannot be written")
        try:
            make_private(self.runs, durable=True)
        except OSError as error:
            raise files.trouble(self.runs, error) from None
        self._note_use()

    def _note_use(self) -> None:
        now, about = round(time(), 3), self.about() or About(path=self.tree)
        if not about.first_use:
            about = replace(about, first_use=now, root_commit=git.root_commit(self.tree))
        elif now - about.last_use < OFTEN:
            return
        self._note(replace(about, last_use=now))

    def about(self) -> About | None:
        """What is known of it; None when it was never used."""
        return _about(self.root)

    def _note(self, about: About) -> None:
        # The path of a project need not be text.
        shown = replace(about, path=os.fsencode(self.tree).decode("utf-8", "replace"))
        files.replace(f"{self.root}/{_ABOUT}", msgspec.json.encode(shown) + b"\n", durable=True)

    def ids(self) -> list[str]:
        """The id of every run, the newest first."""
        found = sorted(self._dated(), reverse=True)
        return [id for _, id in found]

    def _dated(self) -> Iterator[tuple[float, str]]:
        for id in _names(self.runs):
            with contextlib.suppress(OSError):
                if ID_FORM.fullmatch(id) and folders.is_folder(f"{self.runs}/{id}"):
                    yield self._changed(id), id

    def _changed(self, id: str) -> float:
        try:
            return os.lstat(f"{self.runs}/{id}/{JOURNAL}").st_mtime
        except PermissionError:
            return os.lstat(f"{self.runs}/{id}").st_mtime  # there is a run, and whoever looks at it is told why not


def check_id(given: str) -> None:
    """Refuse what cannot be an id."""
    if not ID_FORM.fullmatch(given):
        raise UsageError(f"`{given}` is not a run id", hint="an id has letters, digits, _ and - only")


def at(cwd: str) -> Project:
    """The project of `cwd`: the repository that holds it if git trusts that, else `cwd` itself."""
    return Project(homes.find(), git.top(cwd) or os.path.realpath(cwd))


def known(home: Home) -> list[Project]:
    """Every project that has been used, the latest first."""
    found = [(about.last_use, about.path) for name in _names(home.projects) if (about := _of_folder(home, name))]
    return [Project(home, path) for _, path in sorted(found, reverse=True)]


def unreadable(home: Home) -> dict[str, str]:
    """The folders of projects that this person may not look into -> why: what is in them is in no list."""
    found: dict[str, str] = {}
    for name in sorted(_names(home.projects)):
        root = f"{home.projects}/{name}"
        try:
            files.contents(f"{root}/{_ABOUT}", 1)
            os.listdir(f"{root}/runs")
        except PermissionError as error:
            found[root] = (error.strerror or "").lower()
        except OSError:
            continue
    return found


def is_forgotten(home: Home, name: str) -> bool:
    """Whether a folder of `projects` belongs to a directory that is gone, and has no run."""
    about = _of_folder(home, name)
    if about is None or os.path.lexists(about.path) or time() - about.last_use < OFTEN:
        return False
    return not _names(f"{home.projects}/{name}/runs")


def forget(home: Home, name: str, fd: int) -> None:
    """Remove such a folder from `projects`, open as `fd`, and nothing else: a run that is started meanwhile stays."""
    about = _of_folder(home, name)
    if about is None or not is_forgotten(home, name):
        return
    with folders.opened(name, inside=fd) as root:
        with contextlib.suppress(FileNotFoundError):
            os.rmdir("runs", dir_fd=root)
        os.unlink(_ABOUT, dir_fd=root)
    try:
        os.rmdir(name, dir_fd=fd)
    except OSError:
        if not os.path.exists(f"{home.projects}/{name}/{_ABOUT}"):
            files.replace(f"{home.projects}/{name}/{_ABOUT}", msgspec.json.encode(about) + b"\n", durable=True)


def _of_folder(home: Home, name: str) -> About | None:
    """What a folder of `projects` says of itself, if it is where it belongs."""
    about = _about(f"{home.projects}/{name}")
    return about if about and _folder_name(about.path) == name else None


def _about(root: str) -> About | None:
    try:
        return msgspec.json.decode(files.contents(f"{root}/{_ABOUT}", 1 << 20), type=About)
    except (OSError, msgspec.DecodeError, RecursionError):
        return None


@lru_cache(maxsize=64)
def _folder_name(tree: str) -> str:
    """Readable, and different for every path; cached, because it is in the path of every file of a run."""
    letters = (one if one.isascii() and (one.isalnum() or one in "._-") else "_" for one in os.path.basename(tree)[:50])
    name = "".join(letters) or "root"
    return f"{name}-{sha256(os.fsencode(tree)).hexdigest()[:12]}"


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder) if folders.is_folder(folder) else []
    except OSError:
        return []
