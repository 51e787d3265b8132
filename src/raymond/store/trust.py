"""The projects that a person trusts, and whether a program may use the settings that it finds in a folder.

Trust in a project is bound to the files of its settings as they were when it was given.
"""

import os
from collections.abc import Mapping
from time import time
from typing import Literal

import msgspec
from msgspec import Struct

from raymond.errors import UsageError
from raymond.store.foreign_settings import NAMES, Brought, Unclear, brought
from raymond.store.home import Home
from raymond.system import files, git


class Trust(Struct, frozen=True):
    """The projects whose settings a program may use, as decided when a run was started or resumed."""

    trees: dict[str, dict[str, str] | None] = {}
    """Top levels, with the files that were trusted; None for whatever is there."""

    def covers(self, cwd: str) -> bool:
        """Whether the program may use the settings it finds in `cwd`."""
        top = top_of(cwd)
        try:
            return any(_covers(tree, trusted, top, cwd) for tree, trusted in self.trees.items())
        except Unclear:
            return False


def _covers(tree: str, trusted: Brought | None, top: str, cwd: str) -> bool:
    if top == tree:
        # The top level was looked at when the run began; a folder below it may have settings of its own.
        return trusted is None or _is_part(brought(top, cwd, below=True), trusted)
    if top not in git.worktrees(tree):
        return False
    return _is_part(brought(top, cwd), brought(tree, tree) if trusted is None else trusted)


def decide(tree: str, cwd: str, trusted: Mapping[str, dict[str, str] | None]) -> Trust:
    """Whether `trusted`, top levels with their files, make the project at `tree` trusted for a run in `cwd`."""
    if tree in trusted and trusted[tree] is None:
        return Trust({tree: None})
    others = [one for one in git.worktrees(cwd) if one != tree and one in trusted] if trusted else []
    if tree not in trusted and not others:
        return Trust()
    try:
        found = brought(tree, cwd)
        if tree in trusted and matches(found, trusted[tree]):
            return Trust({tree: trusted[tree]})
        for one in others:
            if matches(brought(one, one), trusted[one]) and _covers(one, trusted[one], tree, cwd):
                return Trust({one: trusted[one], tree: dict(found)})
    except Unclear:
        pass
    return Trust()


def matches(found: Brought, trusted: Brought | None) -> bool:
    """Whether a project would give what was trusted: all that was at its top level, and nothing else anywhere."""
    return trusted is None or not lapse(found, trusted)


class Change(Struct, frozen=True):
    """A file that is not as it was when the project was trusted."""

    path: str
    what: Literal["changed", "new", "gone"]


def lapse(found: Brought, trusted: Brought) -> list[Change]:
    """Why a project is no longer trusted; nothing while it is."""
    changes = [
        Change(path, "changed" if path in trusted else "new")
        for path, hash in found.items()
        if trusted.get(path) != hash
    ]
    changes += [Change(path, "gone") for path in trusted if path.startswith(NAMES) and path not in found]
    return sorted(changes, key=lambda one: one.path)


def _is_part(found: Brought, trusted: Brought) -> bool:
    return all(trusted.get(path) == hash for path, hash in found.items())


def top_of(cwd: str) -> str:
    """The top level of the project that holds `cwd`."""
    return git.top(cwd) or os.path.realpath(cwd)


# --- what a person trusts


class Record(Struct, omit_defaults=True):
    """A project that a person trusts."""

    files: dict[str, str]
    time: float = 0.0


def recorded(home: Home) -> dict[str, Record]:
    """Every trusted project, by its top level."""
    try:
        return msgspec.json.decode(files.contents(_path(home)), type=dict[str, Record])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        why = (error.strerror or str(error)).lower() if isinstance(error, OSError) else "it is damaged"
        hint = "remove it, then trust your projects again: raymond trust DIR"
        raise UsageError(f"{_path(home)} cannot be read: {why}", hint=hint) from None


def remember(home: Home, tree: str, found: Brought) -> None:
    """Trust a project with what it brings now."""
    home.make()
    _write(home, recorded(home) | {tree: Record(dict(found), round(time(), 3))})


def forget(home: Home, tree: str) -> bool:
    """Trust a project no longer; whether it was trusted."""
    kept = recorded(home)
    if kept.pop(tree, None) is None:
        return False
    _write(home, kept)
    return True


def _write(home: Home, records: Mapping[str, Record]) -> None:
    files.replace(_path(home), msgspec.json.encode(records) + b"\n", durable=True)


def _path(home: Home) -> str:
    return f"{home.path}/trusted.json"
