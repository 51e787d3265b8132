"""The sandbox in which Codex runs the commands of a turn that may edit.

Its own sandbox for that, `workspace-write`, lets commands change all that lies in the working directory or in /tmp,
files of Raymond's included. So it gets a permission profile instead: the same sandbox with these files read-only.
A profile replaces what the user's settings say of that sandbox, so that is carried over.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import json

from raymond.backends import Places, Turn
from raymond.patterns import regex

_NO_PATH = regex(r"[*?\[\x00-\x1f\x7f]")
"""What the program takes for a pattern, or cannot take at all."""


def flags(turn: Turn, places: Places, own: Mapping[str, Any]) -> list[str]:
    """The sandbox for `turn`; `own` is what the user's settings say of it."""
    kept = list(dict.fromkeys(_kept((*places.hidden, *places.readable, *places.fixed))))
    folders = [turn.task_folder] if turn.task_folder and not _inside(turn.task_folder, turn.cwd) else []
    if not kept:
        return ["--sandbox", "workspace-write", *_added(folders)]
    folders += [root for root in _roots(own) if not any(_inside(root, place) for place in kept)]
    return ["-c", 'default_permissions="raymond"', "-c", f"permissions.raymond={_profile(kept, own)}", *_added(folders)]


def _kept(paths: Iterable[str]) -> Iterator[str]:
    """The places that a profile can name: without one that is missing no command would start."""
    for path in map(os.path.realpath, paths):
        if os.path.exists(path) and not _NO_PATH.search(path):
            yield path


def _roots(own: Mapping[str, Any]) -> list[str]:
    roots = own.get("writable_roots")
    return [os.path.expanduser(root) for root in roots if isinstance(root, str)] if isinstance(roots, list) else []


def _profile(kept: Iterable[str], own: Mapping[str, Any]) -> str:
    closed = [*kept]
    closed += [":slash_tmp"] if own.get("exclude_slash_tmp") is True else []
    closed += [":tmpdir"] if own.get("exclude_tmpdir_env_var") is True else []
    files = ",".join(f'{json.encode(path).decode()}="read"' for path in closed)
    network = str(own.get("network_access") is True).lower()
    return f'{{extends=":workspace",filesystem={{{files}}},network={{enabled={network}}}}}'


def _added(folders: Iterable[str]) -> list[str]:
    """Unlike the setting for writable folders, the flag adds to those of the user."""
    return [part for folder in folders for part in ("--add-dir", folder)]


def _inside(path: str, folder: str) -> bool:
    path, folder = os.path.realpath(path), os.path.realpath(folder)
    return os.path.commonpath([path, folder]) == folder
