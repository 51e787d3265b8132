"""Twin: the tree as it stands with the sealed files put back, for one more run of the check.

It is an overlay on the same path; without namespaces there is none, and a person decides.
"""

import contextlib
import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from raymond.patterns import regex
from raymond.system import folders
from raymond.system.files import make_private
from raymond.verifier import build_files, overlay
from raymond.verifier import seal as sealed_files
from raymond.verifier.command import Place
from raymond.verifier.decides import Change
from raymond.verifier.seal import Entry, Seal, content, digest_now

_NAME = regex(r"([0-9]+)\.twin")


class Twin(Struct, frozen=True):
    """A twin that is ready."""

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
def twin_of(seal: Seal, changes: Sequence[Change], folder: str) -> Iterator[Twin]:
    """A twin with what `changes` names put back. OSError: none can be made here."""
    make_private(folder)
    files = _stage(seal, changes, folder)
    try:
        place = _overlay(seal, files, folder)
        put = tuple((one["path"], one["source"]) for one in files if one["kind"] == "file")
        yield Twin(place, os.path.join(folder, "upper"), put)
    finally:
        with contextlib.suppress(OSError):
            # The kernel leaves a folder there that even its owner may not list.
            os.chmod(os.path.join(folder, "work", "work"), 0o700)
        shutil.rmtree(folder, ignore_errors=True)


def remove_left(seals: str, step: int = 0) -> None:
    """Remove the twin of a killed verifier, or of all: none of them may run. What cannot be removed stays."""
    with contextlib.suppress(OSError), folders.opened(seals) as folder:
        for name in os.listdir(folder):
            found = _NAME.fullmatch(name)
            if found and step in (0, int(found[1])):
                with contextlib.suppress(OSError):
                    os.chmod(os.path.join(name, "work", "work"), 0o700, dir_fd=folder)
                with contextlib.suppress(OSError):
                    folders.remove(name, folder)


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
    return [*found, *({"path": path, "kind": "nothing"} for path in _compiled(seal.rules.top, changes))]


def _compiled(top: str, changes: Sequence[Change]) -> Iterator[str]:
    """What Python compiled from the versions that are replaced: by size and second it may look like the sealed one."""
    for folder, name in (os.path.split(change.path) for change in changes if change.path.endswith(".py")):
        cache = os.path.join(folder, "__pycache__")
        with contextlib.suppress(OSError):
            found = os.listdir(os.path.join(top, cache))
            yield from (os.path.join(cache, one) for one in found if one.startswith(name.removesuffix("py")))


def _content(seal: Seal, path: str, entry: Entry, packs: str) -> bytes:
    """What a file is to have: as it was sealed, but for what of a manifest decides nothing."""
    sealed = sealed_files.read_pack(os.path.join(packs, entry.pack), entry.offset, entry.known[1])
    current = content(f"{seal.rules.top}/{path}") if entry.part == "manifest" else b""
    return build_files.put_back(os.path.basename(path), sealed, current) if current else sealed


def _overlay(seal: Seal, files: list[dict[str, Any]], folder: str) -> Place:
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
    if sys.platform != "linux" or _is_inside(folder, top):
        raise OSError(errno.ENOTSUP, "this system has no overlays")
    done = subprocess.run(
        [*before, "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False, env={"PATH": os.defpath}
    )
    if done.returncode:
        raise OSError(errno.ENOTSUP, done.stderr.decode("utf-8", "replace").strip() or "there can be no overlay")
    return Place("", before)


def _is_inside(path: str, top: str) -> bool:
    return os.path.commonpath((os.path.realpath(path), os.path.realpath(top))) == os.path.realpath(top)
