"""Vouched files: what decides a check, as a person left it; and how the work of agents differs from that.

Both are trees of git that Raymond made, so nothing is read from a folder that an agent could write.

A test that a person left imports a module by its old name when the work has moved it. With the new name in its place
the test says the same. Only whole names are replaced, by names of the same kind, and only those of files that decide
nothing themselves.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile

from msgspec import Struct

from raymond.patterns import regex
from raymond.verifier import build_files
from raymond.verifier.decides import SKIPPED, Change, How, Part
from raymond.verifier.rules import Rules, hides, is_of_tests, listing, look, modules
from raymond.workspace.repository import Repository

_LINK = b"120000 "
Entries = Mapping[str, bytes]
"""Path -> mode and blob."""

_PLAIN = regex(r"(?:[A-Za-z_][\w-]*/)*[A-Za-z_][\w-]*")
"""A path without what it ends in, each part of which can be a name in a program."""
_MOST = 1 << 20


class Deciding(Struct, frozen=True):
    """What decides the checks of one gate in one tree."""

    rules: Rules
    parts: dict[str, Part]
    """The files that do."""
    known: frozenset[str]
    """Files that would count if they were new."""


def deciding(rules: Rules, there: Iterable[str]) -> Deciding:
    """What in a tree with these files decides its checks."""
    parts: dict[str, Part] = {}
    known = set()
    for path, part, only_new in look(rules, listing(there)):
        if only_new:
            known.add(path)
        else:
            parts[path] = part
    return Deciding(rules, parts, frozenset(known))


class Differences(Struct, frozen=True):
    """How what decides a check differs from what was vouched for."""

    changes: list[Change]
    """Files that were changed or removed, and new ones that a runner would load."""
    tests: list[str]
    """New tests: they are welcome, and prove nothing about the old ones."""

    def all(self, new: Entries) -> list[Change]:
        """Both, with what is in them now."""
        return [*self.changes, *(Change(path, "added", new[path].decode("ascii")) for path in self.tests)]


def differences(
    vouched: Deciding, repository: Repository, old: Entries, new: Entries, there: Iterable[str]
) -> Differences:
    """Compare a tree with the one that was vouched for: what differs is `old` and `new`, and `there` are all files."""
    changed = old.keys() | new.keys()
    if not changed:
        return Differences([], [])
    folders = {os.path.dirname(path) for path in changed}
    nearby = [path for path in there if path.rpartition("/")[0] in folders]
    fresh = {path: (part, only_new) for path, part, only_new in look(vouched.rules, listing(nearby))}
    known = modules(vouched.parts)
    changes, tests = [], []
    for path in sorted(changed):
        if path in vouched.parts:
            if path not in new:
                changes.append(Change(path, "removed"))
            elif not _is_same(repository, vouched.parts[path], path, old[path], new[path]):
                changes.append(Change(path, "changed", new[path].decode("ascii")))
            continue
        makes = vouched.parts.get(os.path.splitext(path)[0]) == "loaded"  # `make` builds `Makefile` from `Makefile.sh`
        if makes or _is_unseen(path, old.get(path, b"") + new.get(path, b"")):
            how: How = "added" if path not in old else "changed" if path in new else "removed"
            changes.append(Change(path, how, new.get(path, b"").decode("ascii")))
            continue
        if path not in fresh or path in vouched.known or path not in new:
            continue
        part, only_new = fresh[path]
        is_hiding = hides(vouched.rules, path, vouched.parts, known)
        if part == "manifest" and not is_hiding and not _counts(repository, path, new[path]):
            continue  # a new package
        if only_new or is_hiding or part != "test":
            changes.append(Change(path, "added", new[path].decode("ascii")))
        else:
            tests.append(path)
    return Differences(changes, tests)


def _is_unseen(path: str, entries: bytes) -> bool:
    """Whether nobody looks at what is behind a path: a link, or in a folder of tools that git does not ignore."""
    return _LINK in entries or not SKIPPED.isdisjoint(path.split("/")[:-1])


def _is_same(repository: Repository, part: Part, path: str, old: bytes, new: bytes) -> bool:
    """Whether only such parts of a manifest changed as decide nothing."""
    if part != "manifest" or old.split()[0] != new.split()[0]:
        return False
    name = os.path.basename(path)
    before, after = (content(repository, one) for one in (old, new))
    return build_files.relevant_part(name, before) == build_files.relevant_part(name, after)


def _counts(repository: Repository, path: str, entry: bytes) -> bool:
    return build_files.counts_when_new(os.path.basename(path), content(repository, entry))


def content(repository: Repository, entry: bytes) -> bytes:
    """What is in a file of a tree; of a link, where it leads."""
    return repository.ask("cat-file", "blob", entry.split()[1].decode("ascii")) if entry else b""


def put_back(repository: Repository, tree: str, found: Differences, old: Entries, new: Entries) -> str:
    """The tree with what decides as it was vouched for, and without new tests."""
    lines: dict[str, bytes] = dict.fromkeys(found.tests, b"")
    for change in found.changes:
        entry = old.get(change.path, b"")
        if change.how == "changed" and build_files.is_manifest(os.path.basename(change.path)):
            entry = _joined(repository, change.path, old[change.path], new[change.path])
        lines[change.path] = entry
    return repository.changed(tree, lines)


def _joined(repository: Repository, path: str, old: bytes, new: bytes) -> bytes:
    """A manifest with the part that decides as it was: a dependency that the work needs stays."""
    before, after = (content(repository, one) for one in (old, new))
    joined = build_files.put_back(os.path.basename(path), before, after)
    return repository.put(old.split()[0], joined)


def moved_tests(found: Differences, old: Entries, new: Entries) -> list[str]:
    """Tests that are gone, and stand as they were further down in the same folder."""
    gone = [one.path for one in found.changes if one.how == "removed"]
    return [
        path
        for path in gone
        if any(
            new[one] == old[path] and f"{os.path.dirname(one)}/".startswith(f"{os.path.dirname(path)}/")
            for one in found.tests
        )
    ]


def reader(repository: Repository, entries: Entries) -> Callable[[str], bytes]:
    """Reads files of a tree; nothing where there is none."""
    return lambda path: content(repository, entries.get(path, b""))


def tests_nothing(vouched: Deciding, found: Differences) -> bool:
    """Whether there is nothing among vouched files that tests anything, and nothing but tests was added since."""
    if any(one.how != "added" or not is_of_tests(vouched.rules, os.path.dirname(one.path)) for one in found.changes):
        return False
    return bool(found.tests) and not any(part in ("test", "named") for part in vouched.parts.values())


# Files that got another name


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
