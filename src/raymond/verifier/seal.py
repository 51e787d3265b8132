"""Pack: the contents of sealed files, one after the other in one file."""

import contextlib
import os
import stat
from collections.abc import Iterator

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from raymond.digests import sha256
from raymond.system import files, git
from raymond.system.files import make_private, private, sync, write_all
from raymond.verifier import build_files
from raymond.verifier.assignment import Assignment
from raymond.verifier.decides import Change, Part
from raymond.verifier.private_git import PrivateGit, check_size, git_at, short, top_of
from raymond.verifier.rules import Rules, hides, joined, look, modules, rules_of

_AT_ONCE = 8 << 20

_SHORT = 1000
"""Bytes of a file for which OpenSSL is not worth its loading."""
_LARGEST = 64 << 20
"""Bytes of a sealed file that is kept as a copy; a larger one that changed cannot be put back."""

_LAST = "last"


class Pack:
    """Collects the contents of one seal."""

    def __init__(self, path: str) -> None:
        self.name = os.path.basename(path)
        self._fd = private(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self._pending = bytearray()
        self._written = 0

    def add(self, content: bytes) -> int:
        """Where it is."""
        offset = self._written + len(self._pending)
        self._pending += content
        if len(self._pending) > _AT_ONCE:
            self._write()
        return offset

    def close(self) -> None:
        """Wait until the disk has it all."""
        self._write()
        sync(self._fd)
        os.close(self._fd)

    def _write(self) -> None:
        write_all(self._fd, self._pending)
        self._written += len(self._pending)
        self._pending = bytearray()


def read_pack(path: str, offset: int, size: int) -> bytes:
    """What was added there."""
    with open(path, "rb", buffering=0) as file:
        return os.pread(file.fileno(), size, offset)


# Seal: what decides a check, as it was when the visit began; and what has changed since


class Entry(Struct, frozen=True, array_like=True, gc=False):
    """A sealed file: how it is known again without reading it, and what is in it."""

    part: Part
    known: tuple[int, int, int, int]
    """Inode, size, mtime and ctime; an agent can set all but the last."""
    mode: int
    digest: str
    relevant: str = ""
    """Of a manifest: the digest of the part that counts."""
    pack: str = ""
    """The pack that has its content, and where it is there; empty for a link and for what is too large."""
    offset: int = 0
    link: str = ""
    """Where a link leads."""

    @property
    def can_be_put_back(self) -> bool:
        """Whether it is known what was in it."""
        return bool(self.pack or self.link)


class Seal(Struct, frozen=True, kw_only=True):
    """Everything that decides the checks of one directory, at one moment."""

    rules: Rules
    cwd: str
    entries: dict[str, Entry]
    known: frozenset[str]
    """Names that would count if they were new."""
    commit: str = ""

    @property
    def digest(self) -> str:
        """The same for the same names and contents."""
        lines = (f"{path}\0{one.digest}\0{one.mode & 0o111 != 0}" for path, one in sorted(self.entries.items()))
        return sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def make(rules: Rules, cwd: str, commit: str, pack: Pack, former: Seal | None) -> Seal:
    """Seal `cwd` as it stands; what `former` knows unchanged is not read again."""
    entries: dict[str, Entry] = {}
    known: set[str] = set()
    before = former.entries if former else {}
    for path, part, only_new in look(rules):
        if only_new:
            known.add(path)
        elif path not in entries and (one := _entry(rules.top, path, part, pack, before.get(path))) is not None:
            entries[path] = one
    return Seal(rules=rules, cwd=cwd, entries=entries, known=frozenset(known), commit=commit)


def over(handed: Seal, now: Seal) -> Seal:
    """The seal of a visit that follows one without a green check: what was sealed then stays as it was."""
    if handed.rules.top != now.rules.top:  # somebody made or removed a repository
        return replace(handed, cwd=now.cwd) if _is_below(now.cwd, handed.rules.top) else now
    since = {one.path for one in changes(handed) if one.how == "added"}
    fresh = {path: one for path, one in now.entries.items() if path not in since}
    return Seal(
        rules=joined(handed.rules, now.rules, handed.entries),
        cwd=now.cwd,
        entries={**fresh, **handed.entries},
        known=now.known - since,
        commit=handed.commit,
    )


def moved(seal: Seal, cwd: str, top: str) -> Seal:
    """The seal of a directory that a person has moved: the same files, somewhere else."""
    below = os.path.relpath(seal.cwd, seal.rules.top)
    if below != "." and cwd.endswith(f"/{below}"):
        top = cwd[: -len(below) - 1]
    return replace(seal, rules=replace(seal.rules, top=top), cwd=cwd)


def _is_below(path: str, top: str) -> bool:
    return path == top or path.startswith(f"{top}/")


def changes(seal: Seal) -> list[Change]:
    """What of the sealed files is not as it was, in the order of their paths."""
    return sorted(_changes(seal), key=lambda one: one.path)


def new_tests(seal: Seal) -> int:
    """How many test files there are that were not there then."""
    return sum(part == "test" and path not in seal.entries for path, part, _ in look(seal.rules))


def _changes(seal: Seal) -> Iterator[Change]:
    linked, known = _linked(seal), modules(seal.entries)
    for path, entry in seal.entries.items():
        if any(path.startswith(folder) for folder in linked):
            yield Change(path, "changed", "behind a link")  # where names are not looked for
        elif (found := _compared(seal.rules.top, path, entry)) is not None:
            yield found
    for path, part, only_new in look(seal.rules):
        if path in seal.entries or path in seal.known:
            continue
        is_hiding = hides(seal.rules, path, seal.entries, known)
        if part == "manifest" and not is_hiding and not _decides(f"{seal.rules.top}/{path}"):
            continue  # a new package
        if only_new or is_hiding or part != "test":
            yield Change(path, "added", digest_now(f"{seal.rules.top}/{path}"))


def _decides(path: str) -> bool:
    try:
        return os.lstat(path).st_size > _LARGEST or build_files.counts_when_new(os.path.basename(path), _read(path))
    except OSError:
        return True


def _linked(seal: Seal) -> list[str]:
    """The folders of sealed files that are links now."""
    folders: set[str] = set()
    for path in seal.entries:
        folder = os.path.dirname(path)
        while folder and folder not in folders:
            folders.add(folder)
            folder = os.path.dirname(folder)
    return [f"{folder}/" for folder in folders if os.path.islink(f"{seal.rules.top}/{folder}")]


def new_files(seal: Seal) -> list[Change]:
    """The tests that are new: a twin has those that were sealed, which may have been moved, at their old places.

    Where no test was sealed there are only new ones to run.
    """
    if not any(one.part == "test" for one in seal.entries.values()):
        return []
    return [Change(path, "added") for path, part, _ in look(seal.rules) if part == "test" and path not in seal.entries]


def _compared(top: str, path: str, entry: Entry) -> Change | None:
    whole = f"{top}/{path}"
    try:
        found = os.lstat(whole)
    except OSError:
        return Change(path, "removed")
    if _known(found) == entry.known and found.st_mode == entry.mode:
        return None
    digest = digest_now(whole)
    same_rights = (found.st_mode ^ entry.mode) & ~0o666 == 0
    if digest == entry.digest and same_rights:
        is_touched = entry.part == "target" and found.st_mtime_ns != entry.known[2]  # which is all that make looks at
        return Change(path, "changed", f"{digest} {found.st_mtime_ns}") if is_touched else None
    is_manifest = entry.relevant and digest and same_rights and found.st_size <= _LARGEST
    if is_manifest and build_files.relevant_part(os.path.basename(path), _read(whole)) == entry.relevant:
        return None
    return Change(path, "changed", digest)


def _entry(top: str, path: str, part: Part, pack: Pack, former: Entry | None) -> Entry | None:
    whole = f"{top}/{path}"
    try:
        found = os.lstat(whole)
        if former and _known(found) == former.known and found.st_mode == former.mode and former.part == part:
            return former
        if stat.S_ISLNK(found.st_mode):
            target = os.readlink(whole)
            return Entry(part, _known(found), found.st_mode, _digest(os.fsencode(target)), link=target)
        if not stat.S_ISREG(found.st_mode):
            return None
        if found.st_size > _LARGEST:
            return Entry(part, _known(found), found.st_mode, digest_now(whole))
        content = _read(whole)
    except OSError:
        return None  # nobody can read it, or it has just gone
    relevant = build_files.relevant_part(os.path.basename(path), content) if part == "manifest" else ""
    return Entry(part, _known(found), found.st_mode, _digest(content), relevant, pack.name, pack.add(content))


def _known(found: os.stat_result) -> tuple[int, int, int, int]:
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _digest(content: bytes) -> str:
    if len(content) < _SHORT:
        return sha256(content).hexdigest()
    import hashlib  # most checks have nothing so long to seal

    return hashlib.sha256(content).hexdigest()


def digest_now(path: str) -> str:
    """Of a file, or of where a link leads; of nothing else."""
    try:
        found = os.lstat(path).st_mode
        if stat.S_ISLNK(found):
            return _digest(os.fsencode(os.readlink(path)))
        if not stat.S_ISREG(found):
            return ""
        import hashlib

        with open(path, "rb", buffering=0) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def content(path: str) -> bytes:
    """What is in a file; nothing when it is none, or cannot be read."""
    try:
        return _read(path) if stat.S_ISREG(os.lstat(path).st_mode) else b""
    except OSError:
        return b""


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        pieces = []
        while piece := os.read(fd, 1 << 20):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(fd)


def save(seal: Seal, path: str) -> None:
    """Write it so that no crash loses it."""
    files.replace(path, msgspec.json.encode(seal), durable=True)


def load(path: str) -> Seal:
    """Read what `save` wrote."""
    with open(path, "rb") as file:
        return msgspec.json.decode(file.read(), type=Seal)


# Before the work begins


def seal_here(given: Assignment, cwd: str) -> Seal:
    """Seal `cwd` for the checks of `given`; the seal is on the disk when this returns."""
    top = _top(given, cwd)
    if not os.path.lexists(os.path.join(top, ".git")):
        check_size(top)
    private, commit = git_of(given, top), git.head(top)
    make_private(given.folder)
    private.prepare(commit)
    skipped, ignored = private.ignored(commit)
    rules = rules_of(
        top,
        cwd,
        [one.run for one in given.checks],
        skipped=skipped,
        ignored=ignored,
        path=given.environment.get("PATH", os.defpath),
        seal=given.seal,
        unseal=given.unseal,
    )
    pack = Pack(os.path.join(given.folder, f"{given.step}.pack"))
    try:
        found = make(rules, cwd, commit, pack, _former(given, top))
        if given.sealed:
            handed = load(seal_path(given.folder, given.sealed))
            found = over(moved_here(given, handed, cwd) if handed.cwd != cwd else handed, found)
    finally:
        pack.close()
    path = seal_path(given.folder, given.step)
    save(found, path)
    _remember(given, top, path)
    return found


def moved_here(given: Assignment, sealed: Seal, cwd: str) -> Seal:
    """A seal in the directory that a person has moved its run to."""
    found = moved(sealed, cwd, _top(given, cwd))
    top = found.rules.top
    git_of(given, top).prepare(git.head(top))
    return found


def _top(given: Assignment, cwd: str) -> str:
    """The tree of `cwd`: not a repository of the home directory that knows nothing of it, which keeps settings."""
    top, home = top_of(cwd), given.environment.get("HOME", "")
    if top == cwd or not home or top != os.path.realpath(home):
        return top
    private, commit = git_of(given, top), git.head(top)
    make_private(given.folder)
    private.prepare(commit)
    return top if private.tracks(commit, os.path.relpath(cwd, top)) else cwd


def seal_path(folder: str, step: int) -> str:
    """Where the seal that this step made is."""
    return os.path.join(folder, f"{step}.seal")


def git_of(given: Assignment, top: str) -> PrivateGit:
    """The run's own git directory for a tree."""
    return git_at(given.folder, top)


def _former(given: Assignment, top: str) -> Seal | None:
    """The last seal of this tree: what has not changed since is not read again."""
    try:
        return load(os.path.join(given.folder, f"{_LAST}-{short(top)}"))
    except (OSError, ValueError):
        return None


def _remember(given: Assignment, top: str, path: str) -> None:
    last = os.path.join(given.folder, f"{_LAST}-{short(top)}")
    aside = f"{last}.{given.step}"
    with contextlib.suppress(OSError):
        os.link(path, aside)
        os.replace(aside, last)
