"""The documents of a loop: the files under docs that Raymond writes, and where they are."""

import errno
import json
import os
import stat

from msgspec import Struct

from raymond.digests import sha256
from raymond.errors import Error
from raymond.patterns import regex
from raymond.system import files

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
WRITTEN = "written"
"""The file in the folder of a loop with the summaries that it wrote: path -> digest."""
ASIDE = ".raymond-new"
"""The end of the name under which a document is written first."""
LARGEST = 16 << 20
"""Bytes of a document that a loop begins with: more than a person ever wrote."""
_MOST = 4 * LARGEST
"""Bytes of one that are read, with all that the loop has added."""


class Documents(Struct, frozen=True):
    """The files of a loop."""

    cwd: str
    """The directory of the run."""
    docs: str
    """Relative to it."""
    top: str
    """The top level of the repository; `cwd` where there is none."""
    has_plans: bool = False
    """Whether specs and the PRD say what the loop does."""

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

    def path(self, *names: str) -> str:
        """A file of them."""
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
            return os.listdir(self.path(LOGS))
        except OSError:
            return []

    def newest(self) -> str:
        """The name of the newest session log; empty when there is none."""
        from raymond.loops.formats import session_log  # who commits reads none

        return session_log.newest(self.logs()) or ""

    def owns(self, path: str) -> bool:
        """Whether a path of the repository is one that Raymond writes."""
        below = os.path.relpath(path, self.inside)
        if self.is_plan(path):
            return True
        return below.partition("/")[0] in (LOGS, SUMMARIES, PROGRESS, FAILURES, LEARNINGS, *STATES.values())

    def is_plan(self, path: str) -> bool:
        """Whether it is one that says what is to be done, besides session logs."""
        return self.has_plans and self.is_about_plans(path)

    def is_about_plans(self, path: str) -> bool:
        """Whether it is a spec, the PRD or its status, whatever the loop does."""
        below = os.path.relpath(path, self.inside)
        return below in (PRD, PRD_STATUS) or is_spec(below)

    def is_summary(self, path: str) -> bool:
        """Whether it is a summary."""
        return os.path.relpath(path, self.inside).startswith(f"{SUMMARIES}/")

    def excluded(self) -> list[str]:
        """Patterns of what git is not to see."""
        folder = _SPECIAL.sub(r"\\\g<0>", self.inside)
        states = (os.path.normpath(os.path.join(folder, name)) for name in STATES.values())
        return [*(f"/{one}*" for one in states), f"*{ASIDE}", "/.raymond/"]

    def hides(self, path: str) -> bool:
        """Whether a path of the repository, if git does not know it, is one that these patterns keep from it."""
        above, name = os.path.split(path)
        is_state = above == ("" if self.inside == "." else self.inside) and name.startswith(tuple(STATES.values()))
        return is_state or name.endswith(ASIDE) or path.startswith(".raymond/")


def is_spec(path: str) -> bool:
    """Whether a path, relative to the folder of documents, is that of an implementation spec."""
    return bool(_SPEC.fullmatch(path))


class TooLarge(Error):
    """A document that cannot be read as a whole, so nothing can be written in its place."""


def read(path: str) -> str:
    """The text of a document, every byte of it; empty when there is none, or something else than a file."""
    found = content(path)
    if len(found) > _MOST:
        raise TooLarge(f"{path} is larger than {_MOST >> 20} MiB", hint="move what is old in it to another file")
    return found.decode("utf-8", "surrogateescape")


def beginning(path: str) -> str:
    """The same for whoever writes nothing of it back: a text that is too large is cut off."""
    return content(path).decode("utf-8", "surrogateescape")


def content(path: str) -> bytes:
    """The same in bytes."""
    try:
        return files.contents(path, _MOST + 1)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EIO):
            raise
        return b""  # a link, a folder or a pipe is no document of ours


def noted(path: str) -> dict[str, str]:
    """The documents that were noted as ours in this file: path -> digest."""
    try:
        found: dict[str, str] = json.loads(files.contents(path))
    except OSError:
        return {}
    return found


def note(path: str, name: str, text: str) -> None:
    """Note that the document `name` is about to be ours: it must not be taken for an agent's."""
    digest = sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    files.replace(path, json.dumps({**noted(path), name: digest}).encode(), durable=True)


def write(path: str, text: str) -> None:
    """Write a document at once: whoever reads it sees the one before or this one. No link is followed.

    It keeps the mode of the one before.
    """
    if beginning(path) == text and os.path.isfile(path) and not os.path.islink(path):
        return
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    check_inside(folder)
    if os.path.isdir(path) and not os.path.islink(path):
        os.rename(path, f"{path}.{os.urandom(4).hex()}{ASIDE}")  # somebody has made a folder of that name
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
