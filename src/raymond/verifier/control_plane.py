"""The control plane: what decides how git and Raymond see the work, and which no task has a reason to change."""

import os
import re
from collections.abc import Iterator

from msgspec import Struct

from raymond.digests import sha256
from raymond.patterns import regex
from raymond.system import git
from raymond.verifier import exclude_lines, tool_settings
from raymond.verifier.private_git import PrivateGit

_DECISIVE = regex(
    r"core\.(?:hookspath|fsmonitor|attributesfile|excludesfile|worktree|trustctime|checkstat|filemode|ignorestat"
    r"|sshcommand|gitproxy|alternaterefscommand|sparsecheckout)"
    r"|filter\..*|diff\.external|diff\..*\.(?:command|textconv)|status\..*|submodule\..*\.ignore|merge\..*\.driver"
    r"|include(?:if)?\..*|alias\..*|extensions\..*|uploadpack\..*|receive\..*|protocol\..*"
    r"|core\.(?:pager|editor|askpass|autocrlf|eol|ignorecase)|sequence\.editor|pager\..*|credential\..*"
    r"|gpg\.(?:.*\.)?program|gpg\.ssh\.defaultkeycommand|url\..*\.(?:insteadof|pushinsteadof)"
    r"|(?:difftool|mergetool|browser|man)\..*\.(?:cmd|path)|interactive\.difffilter|trailer\..*\.(?:cmd|command)"
    r"|submodule\..*\.update|remote\..*\.(?:uploadpack|receivepack|vcs)|diff\.ignoresubmodules"
    r"|lfs\.(?:customtransfer|extension)\..*|lfs\.standalonetransferagent",
    re.DOTALL,
)
"""Settings that run something, or hide a change, in small letters. A name or a remote is nobody's business."""
_SETTING = "the git setting "
_HOOKS = ".git/hooks"
_LEADS = "link to "
_SHALLOW = "shallow"
_FILES = (
    "info/attributes",
    exclude_lines.NAME,
    "info/grafts",
    "info/sparse-checkout",
    "objects/info/alternates",
    _SHALLOW,
)
_MOST = 1 << 20
_ALL_REFERENCES = 1 << 28
_PACKED = regex(rb"(?m)^\S+ refs/replace/(.+)$")


class Control(Struct, frozen=True):
    """The control plane of a tree: what there is -> its digest."""

    parts: dict[str, str]
    harmless: frozenset[str]
    """The parts that an honest tool makes just so; that they come or go is nobody's business."""


def read(top: str, private: PrivateGit) -> Control:
    """The control plane as it stands."""
    parts = {part.what: part for part in _parts(top, private)}
    harmless = frozenset(what for what, part in parts.items() if part.is_harmless)
    return Control({what: parts[what].digest for what in sorted(parts)}, harmless)


def differences(old: Control, new: Control) -> list[str]:
    """What is not as it was, in a few words each."""
    found = []
    for what in sorted(old.parts.keys() | new.parts.keys()):
        before, now = old.parts.get(what), new.parts.get(what)
        if before != now and not (_is_free(old, what) and _is_free(new, what)) and not _is_deepened(old, what):
            how = "added" if before is None else "removed" if now is None else "changed"
            found.append(f"{how} {what}")
    return found


def is_decisive(key: str, value: str) -> bool:
    """Whether a setting of git with this value runs something, or hides a change."""
    return bool(_DECISIVE.fullmatch(key.lower())) and not tool_settings.is_harmless(key, [value])


def _is_free(control: Control, what: str) -> bool:
    return what not in control.parts or what in control.harmless


def _is_deepened(old: Control, what: str) -> bool:
    """Whether it says where a history was cut off already: a fetch of more history is honest."""
    return what == f".git/{_SHALLOW}" and what in old.parts


class _Part(Struct, frozen=True):
    """A part of the control plane."""

    what: str
    digest: str
    """Of what it says."""
    is_harmless: bool = False


def _parts(top: str, private: PrivateGit) -> Iterator[_Part]:
    for name in ("config.toml", "workflow.toml"):
        if (content := _read(os.path.join(top, ".raymond", name))) is not None:
            yield _Part(f".raymond/{name}", _digest(content))
    folder, common = git.directories(top)
    if not folder:
        return
    has_husky = tool_settings.names_husky(_read(os.path.join(top, "package.json")) or b"")
    for key, values in _settings(private, folder, common).items():
        is_harmless = tool_settings.is_harmless(key, values) or (has_husky and tool_settings.is_husky(key, values))
        yield _Part(f"{_SETTING}{key}", _digest("\n".join(values).encode()), is_harmless)
    for name in _FILES:
        content = _read(os.path.join(common, name)) or b""
        if counts := exclude_lines.others(content) if name == exclude_lines.NAME else content:
            yield _Part(f".git/{name}", _digest(counts))
    for path in private.hidden(os.path.join(folder, "index")):
        yield _Part(f"the index flag that hides {path}", "hidden")
    yield from _hooks(top, common)
    yield from _replaced(common)


def _settings(private: PrivateGit, folder: str, common: str) -> dict[str, list[str]]:
    """The settings that matter, and all their values in order."""
    found: dict[str, list[str]] = {}
    for path in (os.path.join(common, "config"), os.path.join(folder, "config.worktree")):
        for key, value in private.settings(path) if os.path.isfile(path) else ():
            if _DECISIVE.fullmatch(key.lower()):
                found.setdefault(key, []).append(value)
    return found


def _hooks(top: str, common: str) -> Iterator[_Part]:
    folder = os.path.join(common, "hooks")
    if link := _into_tree(top, common, folder):
        yield _Part(_HOOKS, f"{_LEADS}{_digest(link)}")
        return
    for name in _listed(folder):
        if name.endswith(".sample"):
            continue
        what, path = f"{_HOOKS}/{name}", os.path.join(folder, name)
        if link := _into_tree(top, common, path):
            yield _Part(what, f"{_LEADS}{_digest(link)}")
        elif (content := _read(path)) is not None:
            yield _Part(what, _digest(content), tool_settings.is_hook_of_lfs(name, content))


def _into_tree(top: str, common: str, path: str) -> bytes:
    """Where a link leads, if that is in the work tree, whose files are the work of a task; empty if not."""
    if not os.path.islink(path):
        return b""
    tree, own, real = (os.path.join(os.path.realpath(one), "") for one in (top, common, path))
    is_in_tree = real.startswith(tree) and not real.startswith(own)
    return os.fsencode(f"{_LEADS}{os.readlink(path)}") if is_in_tree else b""


def _replaced(common: str) -> Iterator[_Part]:
    """Objects that stand in for others."""
    names = _listed(os.path.join(common, "refs", "replace"))
    packed = _read(os.path.join(common, "packed-refs"), _ALL_REFERENCES) or b""
    for name in (*names, *(one.decode("ascii", "replace") for one in _PACKED.findall(packed))):
        yield _Part(f"the replaced object {name[:12]}", name)


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _read(path: str, most: int = _MOST) -> bytes | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return os.read(fd, min(most, max(os.fstat(fd).st_size, _MOST)))
    except OSError:
        return None
    finally:
        os.close(fd)


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()
