"""Settings of git that an item has no reason to change: of .git/config all but a few, elsewhere what runs something."""

import os
import re
from collections.abc import Iterable, Mapping

from raymond.loops.repository import Repository
from raymond.patterns import regex
from raymond.system import files, git
from raymond.verifier import control_plane, tool_settings
from raymond.verifier.private_git import PrivateGit

_FREE = regex(
    r"(?:color|column|advice)\..*|gui\.(?:geometry|wmstate)|merge\.conflictstyle"
    r"|diff\.(?:algorithm|colormoved|colormovedws|renames|renamelimit)"
    r"|lfs\.repositoryformatversion|lfs\..*\.(?:access|locksverify)"
    r"|branch\..*\.(?:description|vscode-merge-base|github-pr-owner-number)|remote\..*\.gh-resolved",
    re.DOTALL,
)
"""Of the repository: what decides how something is shown, and what honest tools note for themselves."""
_MODULE = regex(r"submodule\..*\.(url|active)", re.DOTALL)
_REMOTE = regex(r"remote\..*\.url", re.DOTALL)
_ALIAS = "alias."
_BRANCH = regex(r"branch\.(.*)\.[^.]*", re.DOTALL)
_FILES = ("config", "config.worktree")
_MOST = 1 << 20


def of_repository(top: str, private: PrivateGit) -> dict[str, list[str]]:
    """The settings in the files of the repository, without those that they include."""
    folder, common = git.directories(top)
    paths = [os.path.join(where, name) for where, name in zip((common, folder), _FILES, strict=True)]
    pairs = [pair for path in paths if os.path.isfile(path) for pair in private.settings(path)]
    found = _chosen(top, (pair for pair in pairs if not pair[0].startswith(_ALIAS) and not _FREE.fullmatch(pair[0])))
    for key in [key for key in found if _MODULE.fullmatch(key)]:
        if _is_as_asked(top, private, key, found):
            del found[key]
    aliases = [pair for pair in pairs if pair[0].startswith(_ALIAS)]
    return found | {key: [value for name, value in aliases if name == key] for key, _ in aliases}


def _is_as_asked(top: str, private: PrivateGit, key: str, found: Mapping[str, list[str]]) -> bool:
    """Whether a setting of a submodule is what `git submodule init` makes of .gitmodules: a change of that is seen."""
    values = found[key]
    if key.endswith(".active"):
        return values == ["true"]
    path = os.path.join(top, ".gitmodules")
    asked = [value for name, value in private.settings(path) if name == key] if os.path.isfile(path) else []
    remotes = [one for name, urls in found.items() if _REMOTE.fullmatch(name) for one in urls]
    return values in ([one] for url in asked[-1:] for one in (url, *(_joined(base, url) for base in (*remotes, top))))


def _joined(base: str, relative: str) -> str:
    """The address that a relative one stands for; empty when it is none."""
    if not relative.startswith(("./", "../")):
        return ""
    base, relative = base.rstrip("/"), relative.rstrip("/")
    while relative.startswith(("./", "../")):
        step, _, relative = relative.partition("/")
        base = base.rpartition("/")[0] if step == ".." else base
    return f"{base}/{relative}"


def in_effect(repository: Repository) -> dict[str, list[str]]:
    """The settings that run something or hide a change, wherever they come from."""
    said = repository.ask("config", "--list", "--show-scope", "--includes", "-z").split(b"\0")
    texts = [one.decode("utf-8", "replace") for one in said]
    found = [(scope, *entry.partition("\n")[::2]) for scope, entry in zip(texts[::2], texts[1::2], strict=False)]
    pairs = ((key, value) for scope, key, value in found if scope != "command")  # those are our own
    return _chosen(repository.top, (pair for pair in pairs if control_plane.is_decisive(*pair)))


def _chosen(top: str, pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """All values of each setting in order, but for what honest tools set."""
    found: dict[str, list[str]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    try:
        has_husky = tool_settings.names_husky(files.contents(os.path.join(top, "package.json"), _MOST))
    except OSError:
        has_husky = False
    return {
        key: values
        for key, values in found.items()
        if not tool_settings.is_harmless(key, values) and not (has_husky and tool_settings.is_husky(key, values))
    }


def differences(before: Mapping[str, list[str]], now: Mapping[str, list[str]], branches: Iterable[str]) -> list[str]:
    """What is not as it was, in words; a branch that was not there before may follow what it likes."""
    known = set(branches)
    found = []
    for key in sorted({*before, *now}):
        named = _BRANCH.fullmatch(key)
        is_new_branch = named and f"refs/heads/{named[1]}" not in known
        is_plain = key.startswith(_ALIAS) and key not in before and tool_settings.is_harmless(key, now[key])
        if before.get(key) != now.get(key) and not (is_new_branch or is_plain):
            how = "added" if key not in before else "removed" if key not in now else "changed"
            found.append(f"{how} the git setting {key}")
    return found
