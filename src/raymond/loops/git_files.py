"""The files of git that decide what it does: how they were when an item began, and as they were again.

A link stays the link that it was. What it leads to is neither kept nor written: in the work tree that is work, and
elsewhere it belongs to somebody else.
"""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from raymond.digests import digest
from raymond.loops.hooks import listed
from raymond.system import files
from raymond.verifier import exclude_lines

CONFIG = "config"
HOOKS = "hooks"
_FILES = (CONFIG, "config.worktree", "info/attributes", exclude_lines.NAME, "info/grafts", "info/sparse-checkout")
_MORE = ("objects/info/alternates", "shallow")
_FOLDERS = (HOOKS, "info", "objects/info", "refs", "logs")
_LARGEST = 16 << 20
"""Bytes from which on a file is not kept."""
_LOOKED_AT = 1 << 20
"""Bytes of a file that the control plane looks at."""


class GitFiles(Struct, frozen=True, kw_only=True):
    """These files, relative to the folder that git shares between worktrees."""

    contents: dict[str, bytes]
    modes: dict[str, int]
    links: dict[str, bytes]
    """Which of them, and of their folders, were links, and where each led."""
    unread: dict[str, tuple[int, int]]
    """Those that could not be read whole: their size, and their time in nanoseconds."""

    @property
    def are_linked(self) -> bool:
        """Whether git reads any of them, except for hooks, from behind a link."""
        return any(name.split("/")[0] != HOOKS for name in self.links)

    def differences(self, folder: str) -> list[str]:
        """What is not as it was besides what files say, in words."""
        now = read(folder)
        found = [*_changed_links(folder, self.links, now.links), *self._changed_unread(folder, now.links)]
        large = (name for name, content in self.contents.items() if len(content) > _LOOKED_AT)
        found += [f"changed .git/{name}" for name in large if not self._is_same(name, now.contents.get(name))]
        if exclude_lines.NAME not in now.links and self._lacks_lines(now.contents.get(exclude_lines.NAME, b"")):
            found.append(f"changed .git/{exclude_lines.NAME}")
        changed = (name for name, mode in now.modes.items() if self.modes.get(name, mode) != mode)
        return found + [f"changed the rights of .git/{name}" for name in sorted(changed)]

    def _is_same(self, name: str, now: bytes | None) -> bool:
        before = self.contents.get(name)
        if name == exclude_lines.NAME:
            return exclude_lines.is_same(before or b"", now or b"")
        return before == now

    def _lacks_lines(self, now: bytes) -> bool:
        """Whether lines of Raymond are gone, and no others: the control plane looks at those."""
        before = self.contents.get(exclude_lines.NAME, b"")
        return exclude_lines.others(before) == exclude_lines.others(now) and not exclude_lines.is_same(before, now)

    def _changed_unread(self, folder: str, links: Iterable[str]) -> Iterator[str]:
        for name, was in sorted(self.unread.items()):
            try:
                there = os.lstat(os.path.join(folder, name))
            except OSError:
                yield f"removed .git/{name}, which cannot be put back: it was not kept, being too large or unreadable"
                continue
            if name not in links and was != (there.st_size, there.st_mtime_ns):
                yield f"changed .git/{name}, which is not put back: it was not kept, being too large or unreadable"

    def put_back(self, folder: str, beside: str) -> list[str]:
        """Let them be as they were; no link is followed on the way. Where what is replaced is kept, at `beside`..."""
        kept: list[str] = []
        for name in _FOLDERS:
            if name in self.links:
                kept += self._put_link(folder, name, beside)
                continue
            path = os.path.join(folder, name)
            if os.path.islink(path):
                os.unlink(path)
            os.makedirs(path, exist_ok=True)
        for name in sorted({*_names(folder), *self.contents, *self.links, *self.unread}.difference(_FOLDERS)):
            if name in self.links:
                kept += self._put_link(folder, name, beside)
            elif name in self.unread or len(self.contents.get(name, b"")) == _LOOKED_AT:  # it was cut
                self._put_rights(folder, name)
            else:
                kept += self._put(folder, name, beside)
        return kept

    def _put_link(self, folder: str, name: str, beside: str) -> list[str]:
        path, leads = os.path.join(folder, name), self.links[name]
        if _leads(path) == leads:
            return []
        kept = _kept(folder, name, beside)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        os.symlink(leads, os.fsencode(path))
        return kept

    def _put_rights(self, folder: str, name: str) -> None:
        """Give a file that was not kept its rights; a link in its place goes."""
        path = os.path.join(folder, name)
        if os.path.islink(path):
            os.unlink(path)
        elif name in self.modes and os.path.isfile(path):
            os.chmod(path, self.modes[name])

    def _put(self, folder: str, name: str, beside: str) -> list[str]:
        path, content = os.path.join(folder, name), self.contents.get(name)
        if not os.path.islink(path) and os.path.isdir(path):
            return []  # git takes no folder for a hook
        if name == exclude_lines.NAME:
            content = self._with_lines(path, content)
        if content is None:
            kept = _kept(folder, name, beside)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            return kept
        kept = []
        if _content(path) != content:
            kept = _kept(folder, name, beside)
            files.replace(path, content)
        os.chmod(path, self.modes.get(name, 0o644))
        return kept

    def _with_lines(self, path: str, content: bytes | None) -> bytes | None:
        """What the file is to say: a loop in another worktree still needs the lines that it has added."""
        there = b"" if os.path.islink(path) else _content(path) or b""
        if exclude_lines.is_same(content or b"", there):
            return there if os.path.isfile(path) and not os.path.islink(path) else content
        return exclude_lines.joined(content or b"", there) or content


def read(folder: str) -> GitFiles:
    """These files as they are."""
    contents: dict[str, bytes] = {}
    modes: dict[str, int] = {}
    unread: dict[str, tuple[int, int]] = {}
    links = {name: leads for name in _FOLDERS if (leads := _leads(os.path.join(folder, name))) is not None}
    for name in _names(folder):
        path = os.path.join(folder, name)
        if (leads := _leads(path)) is not None:
            links[name] = leads
        elif os.path.lexists(path) and not os.path.isdir(path):
            there, content = os.lstat(path), _content(path)
            modes[name] = stat.S_IMODE(there.st_mode) & 0o777
            if content is None or len(content) >= _LARGEST:
                unread[name] = (there.st_size, there.st_mtime_ns)
            else:
                contents[name] = content
    return GitFiles(contents=contents, modes=modes, links=links, unread=unread)


def _changed_links(folder: str, old: Mapping[str, bytes], new: Mapping[str, bytes]) -> Iterator[str]:
    for name in sorted({*old, *new}):
        if name not in old:
            yield f"made a link of .git/{name}"
        elif name in new and old[name] != new[name]:
            yield f"let the link .git/{name} lead elsewhere"
        elif name not in new:
            is_there = os.path.lexists(os.path.join(folder, name))
            yield f"{'replaced' if is_there else 'removed'} the link .git/{name}"


def _leads(path: str) -> bytes | None:
    """Where a link leads; None if it is none."""
    try:
        return os.readlink(os.fsencode(path))
    except OSError:
        return None


def _content(path: str) -> bytes | None:
    """The beginning of a file; None if it cannot be read."""
    try:
        return files.contents(path, _LARGEST)
    except OSError:
        return None


def _kept(folder: str, name: str, beside: str) -> list[str]:
    """Keep a copy of the whole file at `beside`...; what cannot be copied is moved aside in git's own folder."""
    path, flat = os.path.join(folder, name), name.replace("/", "-")
    if not os.path.lexists(path) or stat.S_IFMT(os.lstat(path).st_mode) not in (stat.S_IFREG, stat.S_IFDIR):
        return []
    try:
        there = files.contents(path)
    except OSError:
        kept, number = os.path.join(folder, f"{flat}.replaced"), 1
        while os.path.lexists(kept):
            number += 1
            kept = os.path.join(folder, f"{flat}.replaced-{number}")
        os.rename(path, kept)
        return [kept]
    kept = f"{beside}-{flat}-{digest(there)[:8]}"
    files.replace(kept, there)
    return [kept]


def _names(folder: str) -> Iterator[str]:
    """The files that matter, also those that are links; not what is behind a folder that is one."""
    for name in (*_FILES, *_MORE):
        above = os.path.join(folder, os.path.dirname(name))
        if os.path.lexists(os.path.join(folder, name)) and not os.path.islink(above.rstrip("/")):
            yield name
    if not os.path.islink(os.path.join(folder, HOOKS)):
        names = listed(os.path.join(folder, HOOKS))
        yield from (f"{HOOKS}/{name}" for name in names if not name.endswith(".sample"))
