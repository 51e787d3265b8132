"""The control plane: what decides how git and Raymond see the work, and which no task has a reason to change."""

import difflib
import hashlib
import os
import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from raymond.system import git
from raymond.verifier.private_git import PrivateGit

_DECISIVE = re.compile(
    r"core\.(?:hookspath|fsmonitor|attributesfile|excludesfile|worktree|trustctime|checkstat|filemode|ignorestat"
    r"|sshcommand|gitproxy|alternaterefscommand|sparsecheckout)"
    r"|filter\..*|diff\.external|diff\..*\.(?:command|textconv)|status\..*|submodule\..*\.ignore|merge\..*\.driver|include(?:if)?\..*|alias\..*|extensions\..*"
    r"|uploadpack\..*|receive\..*|protocol\..*",
    re.IGNORECASE | re.DOTALL,
)
"""Settings that run something, or hide a change. A name, a remote or a branch is nobody's business."""
_FILES = ("info/attributes", "info/exclude", "info/grafts", "info/sparse-checkout", "objects/info/alternates")
_HUSKY = (".husky", ".husky/_")
"""Where a dependency of many projects puts hooks when it is installed."""
_MOST = 1 << 20
_TEXT = 16 << 10
_ALL_TEXTS = 512 << 10
"""Bytes of one part that are kept to be shown, and characters of all of them."""
_UNKNOWN = "[not kept]"


class Control(Struct, frozen=True):
    """The control plane of a tree: what there is -> its digest."""

    parts: dict[str, str] = {}
    texts: dict[str, str] = {}
    """What there is -> what it says, so that a person can see the difference; seals of earlier versions lack it."""


class Difference(Struct, frozen=True):
    """A part of the control plane that is not as it was."""

    what: str
    how: Literal["added", "removed", "changed", "rewrote"]
    digest: str
    """Of what it is now: who accepts it accepts nothing else."""
    before: str | None = None
    """What it said; None when there was nothing, or nobody knows."""
    now: str | None = None

    @property
    def words(self) -> str:
        """It in a few words."""
        return f"{self.how} {self.what}"

    def shown(self) -> str:
        """All that a person has to see of it."""
        before, now = ("nothing" if text is None else text.rstrip("\n") for text in (self.before, self.now))
        if "\n" not in before and "\n" not in now:
            return f"{self.words}\n  before: {before}\n  now:    {now}"
        old, new = ((text or "").splitlines() for text in (self.before, self.now))
        # A whole file is short, and a person has to know what else is in it.
        lines = difflib.unified_diff(old, new, "before", "now", n=len(old) + len(new), lineterm="")
        return "\n".join([self.words, *(f"  {line}" for line in lines)])


def read(top: str, private: PrivateGit) -> Control:
    """The control plane as it stands."""
    parts, texts, room = {}, {}, _ALL_TEXTS
    for what, digest, content in sorted(_parts(top, private)):
        parts[what] = digest
        text = _text(content)
        if len(text) <= room:
            texts[what] = text
            room -= len(text)
    return Control(parts, texts)


def differences(old: Control, new: Control) -> list[Difference]:
    """What is not as it was."""
    found = []
    for what in sorted(old.parts.keys() | new.parts.keys()):
        before, now = old.parts.get(what), new.parts.get(what)
        if before != now:
            how: Literal["added", "removed", "changed"]
            how = "added" if before is None else "removed" if now is None else "changed"
            said = old.texts.get(what, _UNKNOWN) if before is not None else None
            says = new.texts.get(what, _UNKNOWN) if now is not None else None
            found.append(Difference(what, how, now or "", said, says))
    return found


def rewritten(private: PrivateGit, old: str, new: str) -> list[Difference]:
    """Whether commits from before the work are in no history any more."""
    if not private.is_rewritten(old, new):
        return []
    lost = [f"{one} (in no branch any more)" for one in private.commits(old, new)]
    instead = private.commits(new, old) if new else []
    return [Difference("the history before its work", "rewrote", new, _head(old, lost), _head(new, instead))]


def _head(commit: str, commits: list[str]) -> str:
    return "\n".join([f"HEAD {commit or '(no commit)'}", *commits])


def _text(content: bytes) -> str:
    more = f"\n[and {len(content) - _TEXT:,} bytes more]" if len(content) > _TEXT else ""
    return content[:_TEXT].decode("utf-8", "replace") + more


def _parts(top: str, private: PrivateGit) -> Iterator[tuple[str, str, bytes]]:
    """What there is, its digest, and what it says."""
    for name in ("config.toml", "workflow.toml"):
        if (content := _read(os.path.join(top, ".raymond", name))) is not None:
            yield f".raymond/{name}", _digest(content), content
    folder, common = git.directories(top)
    if not folder:
        return
    for key, values in _settings(private, folder, common).items():
        value = "\n".join(values).encode()  # a setting may have several
        yield f"the git setting {key}", _digest(value), value
    for name in _FILES:
        if content := _read(os.path.join(common, name)):
            yield f".git/{name}", _digest(content), content
    for path, flag in private.hidden(os.path.join(folder, "index")):
        yield f"the index flag that hides {path}", "hidden", flag.encode()
    yield from _hooks(common)
    yield from _replaced(common)


def _settings(private: PrivateGit, folder: str, common: str) -> dict[str, list[str]]:
    """The settings that matter, and all their values in order."""
    found: dict[str, list[str]] = {}
    for path in (os.path.join(common, "config"), os.path.join(folder, "config.worktree")):
        for key, value in private.settings(path) if os.path.isfile(path) else ():
            is_husky = key.lower() == "core.hookspath" and value in _HUSKY
            if _DECISIVE.fullmatch(key) and not is_husky:
                found.setdefault(key, []).append(value)
    return found


def _hooks(common: str) -> Iterator[tuple[str, str, bytes]]:
    folder = os.path.join(common, "hooks")
    for name in _listed(folder):
        content = None if name.endswith(".sample") else _read(os.path.join(folder, name))
        if content is not None:
            yield f".git/hooks/{name}", _digest(content), content


def _replaced(common: str) -> Iterator[tuple[str, str, bytes]]:
    """Objects that stand in for others."""
    folder = os.path.join(common, "refs", "replace")
    for name in _listed(folder):
        yield _stand_in(name, _read(os.path.join(folder, name)) or b"")
    for line in (_read(os.path.join(common, "packed-refs")) or b"").splitlines():
        instead, _, reference = line.partition(b" ")
        if reference.startswith(b"refs/replace/"):
            yield _stand_in(reference.removeprefix(b"refs/replace/").decode("ascii", "replace"), instead)


def _stand_in(name: str, instead: bytes) -> tuple[str, str, bytes]:
    return (
        f"the replaced object {name[:12]}",
        name,
        b"git shows %b in the place of %b" % (instead.strip(), name.encode()),
    )


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _read(path: str) -> bytes | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return os.read(fd, _MOST)
    except OSError:
        return None
    finally:
        os.close(fd)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
