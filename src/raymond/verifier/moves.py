"""Moves: files that the work gave another name, followed in the files that decide a check.

A test that a person left imports a module by its old name. With the new name in its place the test says the same. Only
whole names are replaced, by names of the same kind, and only those of files that decide nothing themselves.
"""

import os
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from msgspec import Struct

from raymond.patterns import regex
from raymond.verifier.vouched import Deciding, Differences, Entries, content
from raymond.workspace.repository import Repository

_PLAIN = regex(r"(?:[A-Za-z_][\w-]*/)*[A-Za-z_][\w-]*")
"""A path without what it ends in, each part of which can be a name in a program."""
_MOST = 1 << 20


class Move(Struct, frozen=True):
    """A file that was at one path, and is at another."""

    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.old} -> {self.new}"


def renamed(repository: Repository, old: str, new: str, deciding: Deciding, differs: Differences) -> list[Move]:
    """The files of a tree that have another name in a later one, and decide nothing there or here."""
    said = repository.ask("diff-tree", "-r", "-z", "-M", "--diff-filter=R", "--name-status", old, new).split(b"\0")
    pairs = zip(said[1::3], said[2::3], strict=False)
    found = [Move(os.fsdecode(before), os.fsdecode(after)) for before, after in pairs]
    counts = {*deciding.parts, *differs.tests, *(one.path for one in differs.changes)}
    return [one for one in found if one.old not in counts and one.new not in counts and any(_names(one, deciding))]


def followed(
    repository: Repository, tree: str, moves: Sequence[Move], deciding: Deciding, old: Entries
) -> dict[str, bytes]:
    """What was vouched for with the new names of moved files: the files of a tree that differ, with mode and blob."""
    if not moves:
        return {}
    named = [pair for one in moves for pair in _names(one, deciding)]
    entries = repository.entries(tree)
    lines: dict[str, bytes] = {}
    for path in deciding.parts:
        entry = old.get(path) or entries.get(os.fsencode(path), b"")
        text = content(repository, entry)
        said = _replaced(text, named) if len(text) <= _MOST and not entry.startswith(b"12") else text
        if said != text:
            lines[path] = repository.put(entry.split()[0], said)
    return lines


def _names(move: Move, deciding: Deciding) -> Iterator[tuple[str, str]]:
    """How files name the old path, and how they would name the new one: `lib/a`, `lib.a`, and a module `a` alone."""
    old, new = (os.path.splitext(path) for path in (move.old, move.new))
    if old[1] != new[1] or not (_PLAIN.fullmatch(old[0]) and _PLAIN.fullmatch(new[0])):
        return
    before, after = old[0].split("/"), new[0].split("/")
    same = [one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))]
    for at in range(len(same)):
        if len(before) - at > 1 and len(after) - at > 1:
            yield from ((sign.join(before[at:]), sign.join(after[at:])) for sign in "/.")
    if "/" not in old[0] and "/" not in new[0] and new[0] not in deciding.rules.modules:
        yield old[0], new[0]


def _replaced(text: bytes, names: Sequence[tuple[str, str]]) -> bytes:
    for before, after in names:
        old, new = re.escape(before.encode()), after.encode()
        package, _, module = before.rpartition(".")
        if package or "/" in before:
            text = re.sub(rb"(?<![\w-])%b(?![\w-])" % old, new, text)
        else:
            text = re.sub(rb"(?m)^(\s*from )%b(?= import )" % old, rb"\g<1>" + new, text)
        start = f"from {package} import " if package else "import "
        if "/" not in before and package == after.rpartition(".")[0]:
            alone = rb"(?m)^(\s*%b)%b[ \t]*$" % (re.escape(start.encode()), re.escape(module.encode()))
            text = re.sub(alone, rb"\g<1>" + f"{after.rpartition('.')[2]} as {module}".encode(), text)
    return text
