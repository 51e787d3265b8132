"""Swap: sealed files in the place of the agent's while a check runs, written down first and undone after a kill."""

import contextlib
import fcntl
import os
import shutil
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from raymond.system.files import make_private, private, replace
from raymond.verifier import overlay
from raymond.verifier.seal import digest_now as digest

_RECORD = "swap"
_KEPT = "kept"
"""The folder, among the seals, with versions of exchanged files that somebody else's took the place of."""
_NOTHING = "nothing"


class Saved(Struct, frozen=True):
    """What the agent had at `path`: a file, a link, a folder or nothing."""

    path: str
    kind: str
    source: str = ""
    """Where it is kept; of a link, where it leads."""
    mode: int = 0
    put: str = ""
    """The digest of what is put in its place; empty for nothing."""
    mtime: int = 0
    """Of what make would build; another file is new when it is put back, so that nothing built meanwhile is used."""


class Swap(Struct, frozen=True):
    """What is exchanged in a tree."""

    top: str
    saved: list[Saved]


@contextlib.contextmanager
def swapped(top: str, files: Sequence[dict[str, Any]], folder: str) -> Iterator[None]:
    """Within it, `files` stand in the tree. What was there is saved in `folder` before anything is touched."""
    with _alone(folder):
        yield from _swapped(top, files, folder)


def _swapped(top: str, files: Sequence[dict[str, Any]], folder: str) -> Iterator[None]:
    undo(folder)
    kept_here = os.path.join(folder, f"{_RECORD}.files")
    shutil.rmtree(kept_here, ignore_errors=True)
    make_private(kept_here)
    saved = [_save(top, one, os.path.join(kept_here, str(number))) for number, one in enumerate(files)]
    record = os.path.join(folder, _RECORD)
    os.sync()
    replace(record, msgspec.json.encode(Swap(top, saved)), durable=True)
    try:
        overlay.put_back(list(files), top)
        yield
    finally:
        undo(folder)


@contextlib.contextmanager
def _alone(folder: str, *, waits: bool = True) -> Iterator[None]:
    """Within it, no other check of the run exchanges files; a process that dies lets go."""
    fd = private(os.path.join(folder, f"{_RECORD}.lock"), os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        yield
    finally:
        os.close(fd)


def recover(folder: str) -> list[str]:
    """Put back what the agent had, if a check that was killed left files exchanged; the files that it was about."""
    if not os.path.exists(os.path.join(folder, _RECORD)):
        return []
    try:
        with _alone(folder, waits=False):
            return undo(folder, leaves_newer=True)
    except BlockingIOError:
        return []  # whoever exchanged them lives, and puts them back


def move(folder: str, tree: str) -> None:
    """The tree in which files are exchanged, if there is one, is `tree` now."""
    with contextlib.suppress(FileNotFoundError):
        with open(os.path.join(folder, _RECORD), "rb") as file:
            found = msgspec.json.decode(file.read(), type=Swap)
        replace(os.path.join(folder, _RECORD), msgspec.json.encode(Swap(tree, found.saved)), durable=True)


def tree_of(folder: str) -> str:
    """The tree in which files are exchanged; empty when there is none."""
    try:
        with open(os.path.join(folder, _RECORD), "rb") as file:
            return msgspec.json.decode(file.read(), type=Swap).top
    except FileNotFoundError:
        return ""


def undo(folder: str, *, leaves_newer: bool = False) -> list[str]:
    """Put back what the agent had; nobody else may be about to.

    What somebody has written meanwhile is kept aside; or it stays (`leaves_newer`), and what the agent had is kept.
    """
    record = os.path.join(folder, _RECORD)
    try:
        with open(record, "rb") as file:
            found = msgspec.json.decode(file.read(), type=Swap)
    except FileNotFoundError:
        return []
    for one in found.saved:
        is_newer = _is_newer(found.top, one)
        if is_newer:
            _keep(one.source if leaves_newer else os.path.join(found.top, one.path), one, folder)
        if not (is_newer and leaves_newer):
            _restore(found.top, one)
    os.unlink(record)
    shutil.rmtree(os.path.join(folder, f"{_RECORD}.files"), ignore_errors=True)
    return [one.path for one in found.saved]


def _save(top: str, one: Mapping[str, Any], source: str) -> Saved:
    path = one["path"]
    whole = os.path.join(top, path)
    if os.path.realpath(os.path.dirname(whole)) != os.path.join(os.path.realpath(top), os.path.dirname(path)).rstrip(
        "/"
    ):
        raise OSError(f"{os.path.dirname(path)} is a link now")
    put = digest(one["source"]) if one["kind"] == "file" else _NOTHING
    try:
        found = os.lstat(whole)
    except OSError:
        return Saved(path, "nothing", put=put)
    if stat.S_ISLNK(found.st_mode):
        return Saved(path, "link", os.readlink(whole), put=put)
    if stat.S_ISDIR(found.st_mode):
        shutil.copytree(whole, source, symlinks=True)
        return Saved(path, "folder", source, put=put)
    shutil.copyfile(whole, source)
    mtime = found.st_mtime_ns if one.get("mtime") else 0
    return Saved(path, "file", source, found.st_mode, put=put, mtime=mtime)


def _is_newer(top: str, one: Saved) -> bool:
    """Whether what is there now is neither what was put there nor what was there before."""
    now = digest(os.path.join(top, one.path))
    return bool(now and one.put and now not in (one.put, digest(one.source) if one.kind == "file" else ""))


def _keep(source: str, one: Saved, folder: str) -> None:
    if os.path.isfile(source):
        make_private(os.path.join(folder, _KEPT))
        name = f"{os.path.basename(one.path)}.{os.urandom(4).hex()}"
        shutil.copyfile(source, os.path.join(folder, _KEPT, name), follow_symlinks=False)


def kept(folder: str) -> str:
    """Where such versions are kept; empty when there are none."""
    path = os.path.join(folder, _KEPT)
    return path if os.path.isdir(path) and os.listdir(path) else ""


def _restore(top: str, one: Saved) -> None:
    if one.kind != "folder":
        overlay.put_back([{**msgspec.structs.asdict(one)}], top)
        return
    overlay.put_back([{"path": one.path, "kind": "nothing"}], top)
    shutil.copytree(one.source, os.path.join(top, one.path), symlinks=True, copy_function=_copy_as_new)


def _copy_as_new(source: str, path: str) -> None:
    shutil.copy(source, path)
    now = time.time_ns()
    os.utime(path, ns=(now, now))
