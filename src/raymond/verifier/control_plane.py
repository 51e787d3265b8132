"""The control plane: what decides how git and Raymond see the work, and which no task has a reason to change."""

import os
import re
from collections.abc import Iterator
from typing import Literal

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
_PACKED = regex(rb"(?m)^(\S+) refs/replace/(.+)$")
_TEXT = 16 << 10
_ALL_TEXTS = 512 << 10
"""Bytes of one part that are kept to be shown, and characters of all of them."""
_UNKNOWN = "[not kept]"


class Control(Struct, frozen=True):
    """The control plane of a tree: what there is -> its digest."""

    parts: dict[str, str]
    texts: dict[str, str]
    """What there is -> what it says, so that a person can see the difference."""
    harmless: frozenset[str]
    """The parts that an honest tool makes just so; that they come or go is nobody's business."""


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
        import difflib  # only what is shown to a person needs it

        old, new = ((text or "").splitlines() for text in (self.before, self.now))
        # A whole file is short, and a person has to know what else is in it.
        lines = difflib.unified_diff(old, new, "before", "now", n=len(old) + len(new), lineterm="")
        return "\n".join([self.words, *(f"  {line}" for line in lines)])


def read(top: str, private: PrivateGit) -> Control:
    """The control plane as it stands."""
    parts, texts, harmless, room = {}, {}, set[str](), _ALL_TEXTS
    for part in sorted(_parts(top, private), key=lambda one: one.what):
        parts[part.what] = _digest(part.content) if part.digest is None else part.digest
        text = _text(part.content)
        if len(text) <= room:
            texts[part.what] = text
            room -= len(text)
        if part.is_harmless:
            harmless.add(part.what)
    return Control(parts, texts, frozenset(harmless))


def differences(old: Control, new: Control) -> list[Difference]:
    """What is not as it was."""
    found = []
    for what in sorted(old.parts.keys() | new.parts.keys()):
        before, now = old.parts.get(what), new.parts.get(what)
        if before != now and not (_is_free(old, what) and _is_free(new, what)) and not _is_deepened(old, what):
            how: Literal["added", "removed", "changed"]
            how = "added" if before is None else "removed" if now is None else "changed"
            said = old.texts.get(what, _UNKNOWN) if before is not None else None
            says = new.texts.get(what, _UNKNOWN) if now is not None else None
            found.append(Difference(what, how, now or "", said, says))
    return found


def is_decisive(key: str, value: str) -> bool:
    """Whether a setting of git with this value runs something, or hides a change."""
    return bool(_DECISIVE.fullmatch(key.lower())) and not tool_settings.is_harmless(key, [value])


def _is_free(control: Control, what: str) -> bool:
    return what not in control.parts or what in control.harmless


def _is_deepened(old: Control, what: str) -> bool:
    """Whether it says where a history was cut off already: a fetch of more history is honest."""
    return what == f".git/{_SHALLOW}" and what in old.parts


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


class _Part(Struct, frozen=True):
    """A part of the control plane: what it is, and what it says."""

    what: str
    content: bytes
    digest: str | None = None
    """None: of its content."""
    is_harmless: bool = False


def _parts(top: str, private: PrivateGit) -> Iterator[_Part]:
    for name in ("config.toml", "workflow.toml"):
        if (content := _read(os.path.join(top, ".raymond", name))) is not None:
            yield _Part(f".raymond/{name}", content)
    folder, common = git.directories(top)
    if not folder:
        return
    has_husky = tool_settings.names_husky(_read(os.path.join(top, "package.json")) or b"")
    for key, values in _settings(private, folder, common).items():
        is_harmless = tool_settings.is_harmless(key, values) or (has_husky and tool_settings.is_husky(key, values))
        yield _Part(f"{_SETTING}{key}", "\n".join(values).encode(), is_harmless=is_harmless)
    for name in _FILES:
        content = _read(os.path.join(common, name)) or b""
        if counts := exclude_lines.others(content) if name == exclude_lines.NAME else content:
            yield _Part(f".git/{name}", content, _digest(counts))
    for path, flag in private.hidden(os.path.join(folder, "index")):
        yield _Part(f"the index flag that hides {path}", flag.encode(), "hidden")
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
        yield _Part(_HOOKS, link, f"{_LEADS}{_digest(link)}")
        return
    for name in _listed(folder):
        if name.endswith(".sample"):
            continue
        what, path = f"{_HOOKS}/{name}", os.path.join(folder, name)
        if link := _into_tree(top, common, path):
            yield _Part(what, link, f"{_LEADS}{_digest(link)}")
        elif (content := _read(path)) is not None:
            yield _Part(what, content, is_harmless=tool_settings.is_hook_of_lfs(name, content))


def _into_tree(top: str, common: str, path: str) -> bytes:
    """Where a link leads, if that is in the work tree, whose files are the work of a task; empty if not."""
    if not os.path.islink(path):
        return b""
    tree, own, real = (os.path.join(os.path.realpath(one), "") for one in (top, common, path))
    is_in_tree = real.startswith(tree) and not real.startswith(own)
    return os.fsencode(f"{_LEADS}{os.readlink(path)}") if is_in_tree else b""


def _replaced(common: str) -> Iterator[_Part]:
    """Objects that stand in for others."""
    folder = os.path.join(common, "refs", "replace")
    for name in _listed(folder):
        yield _stand_in(name, _read(os.path.join(folder, name)) or b"")
    for instead, name in _PACKED.findall(_read(os.path.join(common, "packed-refs"), _ALL_REFERENCES) or b""):
        yield _stand_in(name.decode("ascii", "replace"), instead)


def _stand_in(name: str, instead: bytes) -> _Part:
    says = b"git shows %b in the place of %b" % (instead.strip(), name.encode())
    return _Part(f"the replaced object {name[:12]}", says, name)


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
