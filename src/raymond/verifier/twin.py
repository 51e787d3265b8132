"""Twin: the tree as it stands with the sealed files put back, for one more run of the check.

As an overlay on the same path where namespaces allow it; else as a copy; else the files are exchanged in place. Never
by `git worktree`: installed packages, settings and submodules are missing there, and it runs the hooks of the agent.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from raymond.machine.run_started import TWIN_MAX
from raymond.system.files import make_private
from raymond.verifier import manifests, overlay, pack, swap
from raymond.verifier.assignment import Way
from raymond.verifier.command import Place
from raymond.verifier.seal import Change, Entry, Seal, content, digest_now

_ROOTS: Mapping[Way, str] = {"overlay": "upper", "copy": "copy"}
"""Where in the folder of a twin its files stand; of one in place, in the tree itself."""


class Twin(Struct, frozen=True):
    """A twin that is ready."""

    how: Way
    place: Place
    root: str = ""
    """Where the files stand that were put back."""
    files: tuple[tuple[str, str], ...] = ()
    """Their paths, and where what was put there is kept."""

    def rewritten(self) -> list[str]:
        """Those of them that are not any more as they were put there."""
        return [
            path for path, source in self.files if digest_now(f"{self.root}/{path}") not in ("", digest_now(source))
        ]


@contextlib.contextmanager
def twin_of(
    seal: Seal,
    changes: Sequence[Change],
    folder: str,
    *,
    most: int = TWIN_MAX,
    ways: Sequence[Way] = ("overlay", "copy", "in place"),
) -> Iterator[Twin]:
    """A twin with what `changes` names put back; none of them, and it is a twin of the tree as it stands."""
    make_private(folder)
    files = _stage(seal, changes, folder)
    try:
        for how in ways:
            with _MADE[how](seal, files, folder, most) as place:
                if place is not None:
                    put = tuple((one["path"], one["source"]) for one in files if one["kind"] == "file")
                    yield Twin(how, place, os.path.join(folder, _ROOTS[how]) if how in _ROOTS else seal.rules.top, put)
                    return
        raise OSError("there is no way to make a twin of this tree")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _stage(seal: Seal, changes: Sequence[Change], folder: str) -> list[dict[str, Any]]:
    """What is put back, with the contents in files of their own."""
    made = os.path.join(folder, "sealed")
    make_private(made)
    found: list[dict[str, Any]] = []
    for number, change in enumerate(changes):
        entry = seal.entries.get(change.path)
        if entry is None:
            found.append({"path": change.path, "kind": "nothing"})
        elif entry.link:
            found.append({"path": change.path, "kind": "link", "source": entry.link})
        elif entry.pack:
            source = os.path.join(made, str(number))
            with open(source, "wb") as file:
                file.write(_content(seal, change.path, entry, os.path.dirname(folder)))
            # What is put back is new to whatever compares times, so that nothing of the agent's is used that was built
            # from its own version. What make would build is as old as it was.
            mtime = entry.known[2] if entry.part == "target" else 0
            found.append({"path": change.path, "kind": "file", "source": source, "mode": entry.mode, "mtime": mtime})
    return found


def _content(seal: Seal, path: str, entry: Entry, packs: str) -> bytes:
    """What a file is to have: as it was sealed, but for what of a manifest decides nothing."""
    sealed = pack.read(os.path.join(packs, entry.pack), entry.offset, entry.known[1])
    current = content(f"{seal.rules.top}/{path}") if entry.part == "manifest" else b""
    return manifests.put_back(os.path.basename(path), sealed, current) if current else sealed


@contextlib.contextmanager
def _overlay(seal: Seal, files: list[dict[str, Any]], folder: str, most: int) -> Iterator[Place | None]:
    top = seal.rules.top
    upper, work, plan = (os.path.join(folder, name) for name in ("upper", "work", "plan"))
    make_private(upper)
    make_private(work)
    with contextlib.suppress(OSError):
        os.chmod(upper, os.stat(top).st_mode & 0o7777)
    with open(plan, "w", encoding="utf-8") as file:
        ready = os.path.join(folder, "ready")
        said = {"top": top, "cwd": seal.cwd, "upper": upper, "work": work, "ready": ready, "files": files}
        json.dump(said, file)
    before = (sys.executable, "-I", "-S", overlay.__file__, plan)
    if sys.platform != "linux" or _is_inside(folder, top) or not _works([*before, "true"]):
        yield None
        return
    try:
        yield Place("", before)
    finally:
        _open_up(folder)


def _works(argv: Sequence[str]) -> bool:
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, env={"PATH": os.defpath}
        )
    except OSError:
        return False
    return done.returncode == 0


def _open_up(folder: str) -> None:
    """The kernel leaves a folder there that even its owner may not list."""
    with contextlib.suppress(OSError):
        os.chmod(os.path.join(folder, "work", "work"), 0o700)


@contextlib.contextmanager
def _copy(seal: Seal, files: list[dict[str, Any]], folder: str, most: int) -> Iterator[Place | None]:
    top, made = seal.rules.top, os.path.join(folder, "copy")
    if _is_inside(folder, top) or not _fits(top, most) or _is_named(seal, os.path.dirname(folder)):
        yield None
        return
    argv = ["cp", "-a", *(["--reflink=auto"] if sys.platform == "linux" else []), "--", f"{top}/.", made]
    if not _works(argv):
        yield None
        return
    overlay.put_back(files, made)
    yield Place(os.path.normpath(os.path.join(made, os.path.relpath(seal.cwd, top))))


def _is_named(seal: Seal, packs: str) -> bool:
    """Whether a sealed file, such as a recipe or a script of a virtual environment, has the path of the tree in it.

    It would leave a copy for the original.
    """
    paths = {os.fsencode(one) for one in (seal.rules.top, os.path.realpath(seal.rules.top))}
    kept = (one for one in seal.entries.values() if one.pack)
    contents = (pack.read(os.path.join(packs, one.pack), one.offset, one.known[1]) for one in kept)
    return any(path in content for content in contents for path in paths)


def _fits(top: str, most: int) -> bool:
    """Whether a tree is small enough to be copied."""
    size = 0
    for folder, _, names in os.walk(top):
        for name in names:
            with contextlib.suppress(OSError):
                size += os.lstat(os.path.join(folder, name)).st_size
        if size > most:
            return False
    return True


@contextlib.contextmanager
def _in_place(seal: Seal, files: list[dict[str, Any]], folder: str, most: int) -> Iterator[Place | None]:
    with swap.swapped(seal.rules.top, files, os.path.dirname(folder)):
        yield Place(seal.cwd)


def _is_inside(path: str, top: str) -> bool:
    return os.path.commonpath((os.path.realpath(path), os.path.realpath(top))) == os.path.realpath(top)


_MADE: Mapping[Way, Any] = {"overlay": _overlay, "copy": _copy, "in place": _in_place}
