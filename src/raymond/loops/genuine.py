"""Objects that are what their names say: git itself compares none of them with its name when it reads it."""

import os
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice
from threading import Timer
from typing import Self

from msgspec import Struct

from raymond import digests
from raymond.loops.git_calls import PATIENCE, GitCalls, GitError
from raymond.patterns import regex

_AT_ONCE = 50
"""Names that git is given before it is read: they fit into the smallest pipe."""
_PIECE = 1 << 20
_SHORTER = 40
"""Letters of the names of objects, unless the repository uses SHA-256."""
_FOLDER = "40000"
_SHORT_ENTRY, _LONG_ENTRY = (regex(rb"(?s)([0-7]+) ([^\0]+)\0(.{%d})" % width) for width in (20, 32))
_LOST = "`git fsck` shows it; get the object from another clone"


class Forged(GitError):
    """What git has stored is not what it was; nothing was done with it."""

    lasts = True

    def __init__(self, path: str) -> None:
        super().__init__(f"git has something else stored in the place of {path}, which is lost here", hint=_LOST)
        self.path = path


class Stored(Struct, frozen=True):
    """An object as git has it."""

    name: str
    kind: str
    size: int
    is_genuine: bool
    content: bytes | None
    """None when it is a file that is too long."""


class Entry(Struct, frozen=True):
    """What a folder of a tree has under a name."""

    mode: str
    name: str
    """Of the object."""


def is_genuine(name: str, content: bytes) -> bool:
    """Whether a file with this content has that name in git."""
    made = _begun(name, "blob", len(content))
    made.update(content)
    return made.hexdigest() == name


def _begun(name: str, kind: str, size: int) -> digests.Digest:
    made = digests.begun(size, "sha1" if len(name) == _SHORTER else "sha256")
    made.update(f"{kind} {size}\0".encode())
    return made


class Genuine:
    """One git that reads objects for as long as it is entered; each of them is compared with its name."""

    def __init__(self, calls: GitCalls) -> None:
        self._process: subprocess.Popen[bytes] = calls.reader()
        self._timer = Timer(PATIENCE, self._process.kill)  # a pipe in the place of an object never ends

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._timer.cancel()
        if kind is not None:
            self._process.kill()
        self._process.__exit__(None, None, None)

    def read(self, names: Iterable[str], most: int = 0) -> Iterator[Stored]:
        """Objects, with their content, unless it is that of a file with more than so many bytes."""
        given, left = self._process.stdin, iter(names)
        assert given
        while some := list(islice(left, _AT_ONCE)):
            try:
                given.write("".join(f"{name}\n" for name in some).encode())
                given.flush()
            except BrokenPipeError:
                raise _unreadable(some[0]) from None
            for name in some:
                yield self._next(name, most)

    def _next(self, name: str, most: int) -> Stored:
        said = self._process.stdout
        assert said
        words = said.readline().decode("ascii", "replace").split()
        if len(words) != 3 or not words[2].isdecimal():
            raise _unreadable(name)
        kind, size = words[1], int(words[2])
        made, kept, left = _begun(name, kind, size), [], size
        is_kept = kind != "blob" or size <= most
        while left:
            piece = said.read(min(left, _PIECE))
            if not piece:
                raise _unreadable(name)
            left -= len(piece)
            made.update(piece)
            if is_kept:
                kept.append(piece)
        said.read(1)
        return Stored(name, kind, size, made.hexdigest() == name, b"".join(kept) if is_kept else None)

    def forged(self, tops: Iterable[str]) -> list[str]:
        """Which of these commits and trees, and of the folders in them, are not what they were, in words."""
        level = {name: "" for name in tops if name}
        seen, found = set(level), []
        while level:
            below = dict[str, str]()
            for one in self.read(level):
                path = level[one.name]
                if not one.is_genuine:
                    found.append(path or f"the {one.kind} {one.name[:12]}")
                    continue
                for name, folder in _folders(one):
                    if name not in seen:
                        seen.add(name)
                        below[name] = f"{path}{folder}"
            level = below
        return found

    def files(self, tree: str, paths: Iterable[str]) -> dict[str, Entry]:
        """Those of the paths that a tree or commit has; Forged when a folder on the way is."""
        wanted = set(paths)
        above = {path[: at + 1] for path in wanted for at, letter in enumerate(path) if letter == "/"}
        level, found = {tree: [""]}, dict[str, Entry]()
        while level:
            below = defaultdict[str, list[str]](list)
            for one in self.read(level):
                if not one.is_genuine:
                    raise Forged(level[one.name][0] or f"the {one.kind} {one.name[:12]}")
                if one.kind == "commit":
                    below[_tree_of(one)].append("")
                    continue
                for (name, entry), path in ((each, path) for each in _entries(one) for path in level[one.name]):
                    whole = f"{path}{name}"
                    if entry.mode != _FOLDER and whole in wanted:
                        found[whole] = entry
                    elif f"{whole}/" in above and entry.mode == _FOLDER:
                        below[entry.name].append(f"{whole}/")
            level = dict(below)
        return found


def _unreadable(name: str) -> GitError:
    return GitError(f"the repository has no object {name}, or git cannot read it", hint=_LOST)


def _tree_of(commit: Stored) -> str:
    return (commit.content or b"").partition(b"\n")[0].removeprefix(b"tree ").decode("ascii", "replace")


def _folders(one: Stored) -> Iterator[tuple[str, str]]:
    """The trees right below a commit or a tree: the name of the object, and of the folder."""
    if one.kind == "commit":
        yield _tree_of(one), ""
    elif b"40000 " in (one.content or b""):  # in hardly any tree are folders
        yield from ((entry.name, f"{name}/") for name, entry in _entries(one) if entry.mode == _FOLDER)


def _entries(tree: Stored) -> Iterator[tuple[str, Entry]]:
    pattern = _SHORT_ENTRY if len(tree.name) == _SHORTER else _LONG_ENTRY
    for mode, name, digest in pattern.findall(tree.content or b"") if tree.kind == "tree" else ():
        yield os.fsdecode(name), Entry(mode.decode().lstrip("0"), digest.hex())
