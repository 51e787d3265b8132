"""The documents of a loop: the files under docs that Raymond writes, and where they are."""

import errno
import os
import stat
from abc import abstractmethod
from collections.abc import Iterable
from functools import cached_property

from msgspec import Struct

from raymond.errors import Error
from raymond.patterns import regex
from raymond.system import files
from raymond.workspace.repository import Repository

STATES = {
    "continuous-session": ".continuous-session-state.json",
    "task-loop": ".task-loop-state.json",
    "story-loop": ".story-loop-state.json",
    "ralph": ".ralph-loop-state.json",
}
"""The state file of each loop."""
LOGS, SUMMARIES = "session_logs", "summaries"
PROGRESS, FAILURES, LEARNINGS = "progress.md", "failures.md", "critical-learnings.md"
PRD, PRD_STATUS, SPECS = "prd.md", "prd-status.json", "implementation"
_SPEC = regex(r"implementation/[0-9]+-[^/]+/[0-9]+\.[0-9]+-[^/]+\.md")
_SPECIAL = regex(r"[\\*?\[]")
"""Characters by which a pattern of git stands for several names."""
PLANS = (SPECS, PRD, PRD_STATUS)
RECORDS = (LOGS, SUMMARIES, PROGRESS, FAILURES, LEARNINGS)
ASIDE = ".raymond-new"
"""The end of the name under which a document is written first."""
LARGEST = 16 << 20
"""Bytes of a document that a loop begins with: more than a person ever wrote."""
_MOST = 4 * LARGEST
"""Bytes of one that are read, with all that the loop has added."""


class Documents(Struct, frozen=True):
    """The files of a loop: the only way by which it reads, lists and writes them.

    Names are relative to the folder of documents, in parts. State files are not among them: they stay in the checkout.
    """

    cwd: str
    """The directory of the run."""
    docs: str
    """Relative to it."""
    top: str
    """The top level of the repository; `cwd` where there is none."""
    owned: tuple[str, ...] = RECORDS
    """The files and folders among them that only Raymond writes while the loop works."""

    @property
    def folder(self) -> str:
        """The folder of all of them."""
        return os.path.join(self.cwd, self.docs)

    @property
    def inside(self) -> str:
        """The same, relative to the top level of the repository."""
        # An agent may have put a link in its place: that leads nowhere.
        folder = os.path.normpath(os.path.join(os.path.realpath(self.cwd), self.docs))
        return os.path.relpath(folder, os.path.realpath(self.top))

    @abstractmethod
    def read(self, *names: str) -> str:
        """The text of a document, every byte of it; empty when there is none, or something else than a file."""

    @abstractmethod
    def beginning(self, *names: str) -> str:
        """Read-only variant: truncates a text that is too large."""

    @abstractmethod
    def exists(self, *names: str) -> bool:
        """Whether it is a regular file."""

    @abstractmethod
    def is_folder(self, *names: str) -> bool:
        """Whether it is a folder, and no link to one."""

    @abstractmethod
    def names(self, *folder: str) -> list[str]:
        """What a folder of them has in it; nothing when there is none, or a link in its place."""

    @abstractmethod
    def write(self, text: str, *names: str) -> None:
        """Write a document."""

    def preload(self, paths: Iterable[str]) -> None:
        """Be told that all of these will be read."""
        return

    def path(self, *names: str) -> str:
        """Where a person finds one of them in the checkout."""
        return os.path.join(self.folder, *names)

    def shown(self, *names: str) -> str:
        """The same as people are told it."""
        return os.path.join(self.docs, *names)

    def state(self, loop: str) -> str:
        """The state file of a loop."""
        return self.path(STATES[loop])

    def logs(self) -> list[str]:
        """The names of all session logs."""
        try:
            return self.names(LOGS)
        except OSError:
            return []

    def newest(self) -> str:
        """The name of the newest session log; empty when there is none."""
        from raymond.loops.formats import records  # who commits reads none

        return records.newest_log(self.logs()) or ""

    @property
    def kept(self) -> list[str]:
        """The same as paths of the repository."""
        return [self.inside_path(name) for name in self.owned]

    def inside_path(self, *names: str) -> str:
        """A document as a path of the repository."""
        return os.path.normpath(os.path.join(self.inside, *names))

    def owns(self, path: str) -> bool:
        """Whether a path of the repository is one that Raymond writes."""
        return os.path.relpath(path, self.inside).partition("/")[0] in (*self.owned, *STATES.values())

    def is_plan(self, path: str) -> bool:
        """Whether it is one that says what is to be done, besides session logs."""
        below = os.path.relpath(path, self.inside)
        return SPECS in self.owned and (below in (PRD, PRD_STATUS) or is_spec(below))

    def excluded(self) -> list[str]:
        """Patterns of what git is not to see."""
        folder = _SPECIAL.sub(r"\\\g<0>", self.inside)
        states = (os.path.normpath(os.path.join(folder, name)) for name in STATES.values())
        return [*(f"/{one}*" for one in states), f"*{ASIDE}", "/.raymond/"]


class Folder(Documents, frozen=True):
    """Those in the checkout."""

    def read(self, *names: str) -> str:
        """The text of a file."""
        return read(self.path(*names))

    def beginning(self, *names: str) -> str:
        """The same, cut off."""
        return beginning(self.path(*names))

    def exists(self, *names: str) -> bool:
        """Whether it is a file, and no link to one."""
        path = self.path(*names)
        return os.path.isfile(path) and not os.path.islink(path)

    def is_folder(self, *names: str) -> bool:
        """The same of a folder."""
        path = self.path(*names).rstrip("/")
        return os.path.isdir(path) and not os.path.islink(path)

    def names(self, *folder: str) -> list[str]:
        """What is in the folder."""
        above = [self.path(*folder[: number + 1]) for number in range(len(folder))]
        if any(map(os.path.islink, above)):
            return []
        try:
            return os.listdir(self.path(*folder))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def write(self, text: str, *names: str) -> None:
        """Write the file."""
        write(self.path(*names), text)


class Stored(Documents, frozen=True, dict=True):
    """Those in a tree of git, with what is about to be written there."""

    repository: Repository | None = None
    tree: str = ""
    known: dict[str, bytes] = {}
    """What was read."""
    written: dict[str, str] = {}

    @property
    def _git(self) -> Repository:
        assert self.repository is not None
        return self.repository

    @cached_property
    def _entries(self) -> dict[str, tuple[bytes, bytes]]:
        """Every file in the folder of documents, as named there -> its mode and blob."""
        inside = "" if self.inside == "." else f"{self.inside}/"
        said = self._git.ask("ls-tree", "-r", "-z", self.tree, *([inside] if inside else []))
        found = {}
        for line in said.split(b"\0")[:-1]:
            about, path = line.split(b"\t", 1)
            mode, kind, blob = about.split(b" ")
            if kind == b"blob" and mode != b"120000":
                found[os.fsdecode(path)[len(inside) :]] = (mode, blob)
        return found

    def _content(self, name: str) -> bytes:
        if name in self.written:
            return self.written[name].encode("utf-8", "surrogateescape")
        if name not in self._entries:
            return b""
        if name not in self.known:
            self.preload([name])
        return self.known[name]

    def read(self, *names: str) -> str:
        """The text of a document."""
        content = self._content(_joined(names))
        if len(content) > _MOST:
            what = f"{self.shown(*names)} is larger than {_MOST >> 20} MiB"
            raise TooLarge(what, hint="move what is old in it to another file")
        return content.decode("utf-8", "surrogateescape")

    def beginning(self, *names: str) -> str:
        """The same, cut off."""
        return self._content(_joined(names))[: _MOST + 1].decode("utf-8", "surrogateescape")

    def preload(self, paths: Iterable[str]) -> None:
        """Read several at once."""
        wanted = {path: self._entries[path][1].decode("ascii") for path in paths if path in self._entries}
        contents = self._git.blobs(dict.fromkeys(wanted.values())) if wanted else {}
        self.known.update({path: contents[blob] for path, blob in wanted.items()})

    def exists(self, *names: str) -> bool:
        """Whether there is such a file."""
        return _joined(names) in self._entries or _joined(names) in self.written

    def names(self, *folder: str) -> list[str]:
        """What is in a folder."""
        prefix = f"{_joined(folder)}/" if folder else ""
        every = [*self._entries, *self.written]
        return list(dict.fromkeys(one[len(prefix) :].split("/")[0] for one in every if one.startswith(prefix)))

    def is_folder(self, *names: str) -> bool:
        """Whether there is something in it."""
        return bool(self.names(*names))

    def write(self, text: str, *names: str) -> None:
        """Write it with the next commit."""
        self.written[_joined(names)] = text

    def onto(self, tree: str) -> str:
        """A tree with these documents: as they are here, and as they were written."""
        repository, lines = self._git, dict[str, bytes]()
        if tree != self.tree:
            theirs = repository.changes(tree, self.tree, self.kept)
            lines = {os.fsdecode(path): new for path, (_, new) in theirs.items()}
        files = {
            self.inside_path(name): (self._entries.get(name, (b"100644",))[0], text.encode("utf-8", "surrogateescape"))
            for name, text in self.written.items()
        }
        return repository.changed(tree, lines | repository.put_all(files))


def stored(documents: Documents, repository: Repository, tree: str) -> Stored:
    """The documents as a commit or a tree has them."""
    given = documents.cwd, documents.docs, documents.top, documents.owned
    return Stored(*given, repository=repository, tree=tree, known={}, written={})


def _joined(names: tuple[str, ...]) -> str:
    return os.path.normpath(os.path.join(*names)) if names else ""


def is_spec(path: str) -> bool:
    """Whether a path, relative to the folder of documents, is that of an implementation spec."""
    return bool(_SPEC.fullmatch(path))


class TooLarge(Error):
    """A document that cannot be read as a whole, so nothing can be written in its place."""


def read(path: str) -> str:
    """The text of a file of Raymond, every byte of it; empty when there is none, or something else than a file."""
    found = _content(path)
    if len(found) > _MOST:
        raise TooLarge(f"{path} is larger than {_MOST >> 20} MiB", hint="move what is old in it to another file")
    return found.decode("utf-8", "surrogateescape")


def beginning(path: str) -> str:
    """Read-only variant: truncates a text that is too large."""
    return _content(path).decode("utf-8", "surrogateescape")


def _content(path: str) -> bytes:
    try:
        return files.contents(path, _MOST + 1)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EIO):
            raise
        return b""  # a link, a folder or a pipe is no document of ours


def write(path: str, text: str) -> None:
    """Replace such a file atomically. No link is followed.

    It keeps the mode of the one before.
    """
    if beginning(path) == text and os.path.isfile(path) and not os.path.islink(path):
        return
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    check_inside(folder)
    if os.path.isdir(path) and not os.path.islink(path):
        os.rename(path, f"{path}.{os.urandom(4).hex()}{ASIDE}")  # a folder has taken that name
    aside = f"{path}.{os.urandom(4).hex()}{ASIDE}"
    mode, group = shared(path)
    fd = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666 if mode is None else mode & 0o700)
    try:
        if mode is not None:
            share(fd, mode, group)
        with open(fd, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except OSError:
        os.unlink(aside)
        raise


def shared(path: str) -> tuple[int | None, int]:
    """Who may do what with a file, and its group; None when there is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None, -1
    return (stat.S_IMODE(found.st_mode) & 0o777, found.st_gid) if stat.S_ISREG(found.st_mode) else (None, -1)


def share(fd: int, mode: int, group: int) -> None:
    """Give a new file the rights of another; those of a group that cannot have it are left out."""
    if os.fstat(fd).st_gid != group:
        try:
            os.fchown(fd, -1, group)
        except OSError:
            mode &= 0o707
    os.fchmod(fd, mode)


def check_inside(folder: str) -> None:
    """Refuse a folder of documents that leads elsewhere by a link."""
    real = os.path.realpath(folder)
    for above in (folder, os.path.dirname(folder)):
        if os.path.islink(above):
            raise Error(f"{above} is a link to {real}: Raymond writes no documents there", hint="make it a folder")
