"""The control plane: what decides how git and Raymond see the work, and which no task has a reason to change."""

import hashlib
import os
import re
from collections.abc import Iterator

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


class Control(Struct, frozen=True):
    """The control plane of a tree: what there is -> its digest."""

    parts: dict[str, str] = {}


def read(top: str, private: PrivateGit) -> Control:
    """The control plane as it stands."""
    return Control(dict(sorted(_parts(top, private))))


def differences(old: Control, new: Control) -> list[str]:
    """What is not as it was, in words."""
    found = []
    for what in sorted(old.parts.keys() | new.parts.keys()):
        before, now = old.parts.get(what), new.parts.get(what)
        if before != now:
            found.append(f"{'added' if before is None else 'removed' if now is None else 'changed'} {what}")
    return found


def _parts(top: str, private: PrivateGit) -> Iterator[tuple[str, str]]:
    for name in ("config.toml", "workflow.toml"):
        if (content := _read(os.path.join(top, ".raymond", name))) is not None:
            yield f".raymond/{name}", _digest(content)
    folder, common = git.directories(top)
    if not folder:
        return
    for path in {os.path.join(common, "config"), os.path.join(folder, "config.worktree")}:
        for key, value in private.settings(path) if os.path.isfile(path) else ():
            is_husky = key.lower() == "core.hookspath" and value in _HUSKY
            if _DECISIVE.fullmatch(key) and not is_husky:
                yield f"the git setting {key}", _digest(value.encode())
    for name in _FILES:
        if content := _read(os.path.join(common, name)):
            yield f".git/{name}", _digest(content)
    for path in private.hidden(os.path.join(folder, "index")):
        yield f"the index flag that hides {path}", "hidden"
    yield from _hooks(common)
    yield from _replaced(common)


def _hooks(common: str) -> Iterator[tuple[str, str]]:
    folder = os.path.join(common, "hooks")
    for name in _listed(folder):
        content = None if name.endswith(".sample") else _read(os.path.join(folder, name))
        if content is not None:
            yield f".git/hooks/{name}", _digest(content)


def _replaced(common: str) -> Iterator[tuple[str, str]]:
    """Objects that stand in for others."""
    for name in _listed(os.path.join(common, "refs", "replace")):
        yield f"the replaced object {name[:12]}", name
    for line in (_read(os.path.join(common, "packed-refs")) or b"").splitlines():
        reference = line.partition(b" ")[2]
        if reference.startswith(b"refs/replace/"):
            said = reference.removeprefix(b"refs/replace/").decode("ascii", "replace")
            yield f"the replaced object {said[:12]}", said


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
