"""What a tree has besides the files of git: installed packages, data, small ignored files of the person's.

None of it is ever harvested. Folders that a build makes are not carried: they begin empty.
"""

import errno
import os
import shutil
import stat
import subprocess
from collections.abc import Container, Iterable

from msgspec import Struct

from raymond.errors import UsageError, WorkspaceError
from raymond.system import folders, git
from raymond.system.files import regular
from raymond.workspace.repository import Repository
from raymond.workspace.slot import Origin

LARGE = 10 << 20
"""Bytes of an untracked file that is shown instead of copied."""
_OWN = ".raymond/"


class Carried(Struct):
    """What git does not track in a checkout, by what becomes of it; paths are relative to its top."""

    installed: list[str]
    """Folders of packages: shown with a layer over them."""
    data: list[str]
    """Large files, and what the person named: shown read-only."""
    copied: list[str]
    """Small ignored files, such as `.env`."""
    left_out: list[str]
    """Repositories inside of this one."""
    untracked: list[bytes]
    """New files of the person's that belong to the work."""


def survey(repository: Repository, top: str, named: Iterable[str]) -> Carried:
    """Sort what git does not track in the checkout at `top`; `named` are the folders that the person carries along."""
    # With --no-empty-directory, git leaves out what is ignored in a folder without tracked files.
    asked = ("ls-files", "-o", "-i", "--exclude-standard", "--directory", "-z")
    ignored = repository.ask(*asked, worktree=top).split(b"\0")
    others = repository.ask("ls-files", "-o", "--exclude-standard", "-z", worktree=top).split(b"\0")
    found = Carried([], [], [], [], [])
    for raw in ignored:
        path = os.fsdecode(raw)
        if not path or path == _OWN:
            continue
        if path.endswith("/"):
            if is_installed(os.path.join(top, path)) and not _installed_above(top, path.rstrip("/")):
                found.installed.append(path.rstrip("/"))
        elif not _installed_above(top, path):
            _add_file(found, top, path, is_ignored=True)
    for raw in others:
        path = os.fsdecode(raw)
        if path.endswith("/"):
            found.left_out.append(path.rstrip("/"))
        elif path and not (folder := _installed_above(top, path)):
            _add_file(found, top, path, is_ignored=False)
        elif path and folder not in found.installed:
            found.installed.append(folder)
    _add_named(found, top, named)
    return found


def _add_file(found: Carried, top: str, path: str, *, is_ignored: bool) -> None:
    whole = os.path.join(top, path)
    try:
        status = os.lstat(whole)
    except OSError:
        return
    if stat.S_ISREG(status.st_mode) and status.st_size > LARGE:
        found.data.append(path)
    elif is_ignored:
        found.copied.append(path)
    else:
        found.untracked.append(os.fsencode(path))


def check_named(top: str, named: Iterable[str], tracked: Container[str] = ()) -> None:
    """Refuse to carry what is not there, or is there anyway."""
    for given in named:
        path = os.path.normpath(given)
        if os.path.isabs(path) or path.startswith("..") or path == "." or not os.path.lexists(os.path.join(top, path)):
            hint = "name files and folders of the project, relative to its top level"
            raise UsageError(f"carry: there is no `{given}` in {top}", hint=hint)
        if path in tracked:
            raise UsageError(f"carry: git tracks `{given}`, so agents have it anyway", hint="remove it there")


def _add_named(found: Carried, top: str, named: Iterable[str]) -> None:
    check_named(top, named)
    for path in map(os.path.normpath, named):
        if path in found.installed:
            continue
        found.data = [one for one in found.data if not one.startswith(f"{path}/")] + [path]
        found.copied = [one for one in found.copied if one != path and not one.startswith(f"{path}/")]
        found.untracked = [one for one in found.untracked if not f"{os.fsdecode(one)}/".startswith(f"{path}/")]


def naming(top: str) -> str:
    """A file among installed packages that names the project's own path; empty when there is none."""
    needle = os.fsencode(top)
    for folder in git.untracked_folders(top):
        if not is_installed(folder):
            continue
        for above, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(above, name)
                if os.path.isfile(path) and not os.path.islink(path) and _has(path, needle):
                    return os.path.relpath(path, top)
    return ""


def _has(path: str, needle: bytes) -> bool:
    with open(path, "rb") as file:
        before = b""
        while piece := file.read(1 << 20):
            if needle in before + piece:
                return True
            before = piece[-len(needle) :]
    return False


def is_installed(folder: str) -> bool:
    """Whether a folder has installed packages: it says so itself."""
    return os.path.basename(folder.rstrip("/")) == "node_modules" or os.path.isfile(os.path.join(folder, "pyvenv.cfg"))


def _installed_above(top: str, path: str) -> str:
    """The folder of packages that holds a file; empty when there is none."""
    parts = path.split("/")
    for length in range(1, len(parts)):
        folder = "/".join(parts[:length])
        if is_installed(os.path.join(top, folder)):
            return folder
    return ""


def copy(paths: Iterable[str], top: str, tree: str) -> None:
    """Copy small ignored files, unless they have gone. Where the tree has a link on the way, nothing is copied."""
    with folders.opened(tree) as into:
        for path in paths:
            source, (*above, name) = os.path.join(top, path), path.split("/")
            try:
                found = os.lstat(source)
                with folders.down(into, *above, make=True, mode=0o777) as folder:
                    _copy(source, found, name, folder)
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                    raise


def _copy(source: str, found: os.stat_result, name: str, folder: int) -> None:
    if stat.S_ISLNK(found.st_mode):
        folders.remove(name, folder)
        os.symlink(os.readlink(source), name, dir_fd=folder)
    elif stat.S_ISREG(found.st_mode):
        folders.remove(name, folder)
        new = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
        with regular(source) as file, open(new, "wb") as target:
            shutil.copyfileobj(file, target)
            target.flush()
            os.fchmod(new, stat.S_IMODE(found.st_mode))
            os.utime(new, ns=(found.st_atime_ns, found.st_mtime_ns))


def place(found: Carried | Origin, top: str, tree: str, *, whole: bool) -> None:
    """Make places for installed packages and data; with `whole`, copy or link them."""
    for path in (*found.installed, *found.data):
        source, target = os.path.join(top, path), os.path.join(tree, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if not whole:
            os.mkdir(target) if os.path.isdir(source) else os.close(os.open(target, os.O_CREAT | os.O_CLOEXEC, 0o600))
        else:
            argv = ["cp", "-a", "--reflink=auto", "--", source, target]
            done = subprocess.run(argv, capture_output=True, text=True, close_fds=False, check=False)
            if done.returncode:
                raise WorkspaceError(f"{path} cannot be copied: {done.stderr.strip()[-200:]}")
