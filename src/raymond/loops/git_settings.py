"""Settings of git that an item has no reason to change: what runs something, who commits, and where a push goes."""

import os
import re
from collections.abc import Iterable, Mapping

from raymond.loops.repository import Repository
from raymond.patterns import regex
from raymond.system import files, git
from raymond.verifier import control_plane, tool_settings
from raymond.verifier.private_git import PrivateGit

_OURS = regex(
    r"remote\..*\.(?:url|pushurl)|branch\..*\.(?:remote|pushremote|merge)"
    r"|(?:url|https?|user|author|committer|gc|commit|push|core|init|tag|fetch|credential)\..*",
    re.DOTALL,
)
"""Of the repository: in small letters."""
_BRANCH = regex(r"branch\.(.*)\.[^.]*", re.DOTALL)
_FILES = ("config", "config.worktree")
_MOST = 1 << 20


def of_repository(top: str, private: PrivateGit) -> dict[str, list[str]]:
    """The settings in the files of the repository, without those that they include."""
    folder, common = git.directories(top)
    paths = [os.path.join(where, name) for where, name in zip((common, folder), _FILES, strict=True)]
    pairs = [pair for path in paths if os.path.isfile(path) for pair in private.settings(path)]
    return _chosen(top, (pair for pair in pairs if _OURS.fullmatch(pair[0].lower())))


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
        if before.get(key) != now.get(key) and not (named and f"refs/heads/{named[1]}" not in known):
            how = "added" if key not in before else "removed" if key not in now else "changed"
            found.append(f"{how} the git setting {key}")
    return found
