"""What tools write into git's settings and hooks when a project installs them, and settings that only show text."""

import json
import re
from collections.abc import Sequence

from raymond.patterns import regex

_HUSKY = (".husky", ".husky/_")
"""Where a dependency of many projects puts hooks when it is installed."""
_TABLES = ("dependencies", "devDependencies", "optionalDependencies")
_LFS = {
    "filter.lfs.clean": ("git-lfs clean -- %f",),
    "filter.lfs.smudge": ("git-lfs smudge -- %f", "git-lfs smudge --skip -- %f"),
    "filter.lfs.process": ("git-lfs filter-process", "git-lfs filter-process --skip"),
    "filter.lfs.required": ("true",),
}
"""What `git lfs install --local` sets."""
_LFS_HOOKS = ("pre-push", "post-checkout", "post-commit", "post-merge")
_SAID = r'"(?:[^"$`\\]|\\n)*"'
"""A text that a shell prints as it is; git-lfs has it in several languages."""
_LFS_HOOK = (
    r"#!/bin/sh\ncommand -v git-lfs >/dev/null 2>&1 \|\| "
    rf'\{{ (?:echo >&2|printf >&2 "\\n%s\\n\\n") {_SAID}; exit 2; \}}\ngit lfs NAME "\$@"\n?'
)
_SHOWS = regex(r"core\.pager|pager\..*|(?:core|sequence)\.editor", re.DOTALL)
_PLAIN = regex(r"|cat|more|less(?: -[A-Za-z]+)*|true|false|:|vi|vim|nano")
"""Programs that show a text, or let a person edit it, and do nothing else."""

_ALIAS = regex(
    r"add|checkout|commit|fetch|pull|push|rebase|restore|stash|switch"
    r"|(?:branch|diff|log|show|status)(?: -[A-Za-z]+| --(?:all|cached|decorate|graph|oneline|short|staged|stat))*"
)
"""What people abbreviate: a command of git itself, with no more than how it shows something."""


def is_husky(key: str, values: Sequence[str]) -> bool:
    """Whether a setting is the one that husky makes."""
    return key == "core.hookspath" and len(values) == 1 and values[0] in _HUSKY


def names_husky(manifest: bytes) -> bool:
    """Whether a package.json has husky among its dependencies."""
    try:
        found = json.loads(manifest)
    except (ValueError, RecursionError):
        return False
    tables = [found.get(name) for name in _TABLES] if isinstance(found, dict) else []
    return any(isinstance(table, dict) and "husky" in table for table in tables)


def is_harmless(key: str, values: Sequence[str]) -> bool:
    """Whether a setting has the value that an honest tool gives it, or one that runs nothing of anybody's."""
    if len(values) != 1:
        return False
    if re.fullmatch(r"submodule\..*\.update", key, re.DOTALL):  # as `git submodule init` copies it
        return not values[0].lstrip().startswith("!")
    if _SHOWS.fullmatch(key):
        return _PLAIN.fullmatch(values[0]) is not None
    if key.startswith("alias."):
        return _ALIAS.fullmatch(values[0]) is not None
    return values[0] in _LFS.get(key, ())


def is_hook_of_lfs(name: str, content: bytes) -> bool:
    """Whether a hook is one that git-lfs makes, with its own text."""
    if name not in _LFS_HOOKS:
        return False
    return re.fullmatch(_LFS_HOOK.replace("NAME", name), content.decode("utf-8", "replace")) is not None
