"""The files of a question: as they are when it is asked, and when it is answered."""

import os
from collections.abc import Iterable, Mapping

from msgspec import Struct

from raymond.digests import digest
from raymond.language.refusal import Refusal
from raymond.machine.agent import AskedFile
from raymond.system import files
from raymond.text import is_text

MOST_BYTES = 1 << 20
"""Bytes of a file that is shown."""
MOST_FILES = 20
"""Files of a question."""


class Found(Struct, frozen=True):
    """A file of a question as it is now."""

    path: str
    data: bytes
    sha256: str
    problem: str = ""
    """Why it cannot be shown."""

    @property
    def mark(self) -> str:
        """What a person has seen of it: what is in it, or that it cannot be shown, and why."""
        return self.sha256 or self.problem


def read_now(cwd: str, path: str) -> Found:
    """The file at `path`, which must stay inside of `cwd`."""
    top = os.path.realpath(cwd)
    try:
        real = os.path.realpath(os.path.join(top, path))
        if not real.startswith(top.rstrip("/") + "/"):
            return Found(path, b"", "", f"`{path}` is outside of {cwd}")
        data = files.contents(real, MOST_BYTES + 1)
    except OSError as error:
        return Found(path, b"", "", f"`{path}` cannot be read: {(error.strerror or '').lower()}")
    except ValueError:
        return Found(path, b"", "", "`files` has a path with a NUL in it")
    if len(data) > MOST_BYTES:
        return Found(path, b"", "", f"`{path}` is larger than {MOST_BYTES >> 20} MiB")
    return Found(path, data, digest(data))


def read_all(cwd: str, asked: Iterable[AskedFile]) -> list[Found]:
    """Every file of a question that was asked in `cwd`, as it is now."""
    return [read_now(cwd, one.path) for one in asked]


def resolve(cwd: str, given: str, folder: str = "") -> tuple[AskedFile, ...] | Refusal:
    """What `files="A B"` names now, or why it cannot be shown; `folder` is where `cwd` really is, if elsewhere."""
    paths = list(dict.fromkeys(given.split()))
    if len(paths) > MOST_FILES:
        return Refusal("file", f"`files` names more than {MOST_FILES} files", "put them together into one")
    taken = []
    for path in paths:
        found = read_now(folder or cwd, path)
        if found.problem or not is_text(path):
            hint = (
                "write the file first, or leave it out; paths are relative to your directory, with blanks between them"
            )
            return Refusal("file", f"<ask> cannot show a file: {found.problem or path}", hint)
        taken.append(AskedFile(path, len(found.data), found.sha256, folder))
    return tuple(taken)


def why_hidden(found: Iterable[Found]) -> str:
    """Why nobody can have seen all that an answer is about; empty when every file can be shown."""
    problems = [one.problem for one in found if one.problem]
    return f"{'; '.join(problems)}, so it cannot be shown" if problems else ""


def changed(found: Iterable[Found], asked: Iterable[AskedFile], seen: Mapping[str, str]) -> list[str]:
    """The files that are no longer what was asked about, nor what somebody has `seen` since (path -> mark)."""
    before = {one.path: one.sha256 for one in asked} | dict(seen)
    return [one.path for one in found if not one.problem and one.mark != before[one.path]]
