"""What a folder would give to agents' programs, and the projects that a person trusts with that.

A program that is started in a folder uses the settings it finds there: hooks, servers, variables. Trust in a project is
bound to these files as they were when it was given.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from hashlib import sha256
from time import time
from typing import TypeAlias

import msgspec
from msgspec import Struct

from raymond.errors import UsageError
from raymond.store.home import Home
from raymond.system import files, git

NAMES = (".claude", ".codex", ".mcp.json")
"""Where the programs look for settings of a project."""
_ABOVE = ".mcp.json"
"""What is also looked for in every folder above."""
_SETTINGS = (".claude", ".codex", ".mcp.json", "settings.json", "settings.local.json", "config.toml", "hooks.json")
"""What must not be a link: its content could change unseen."""
_LOCAL = ".claude/settings.local.json"
"""Claude Code also takes the one of the main checkout in every other worktree."""
_WORKTREES = ".claude/worktrees"
"""Whole checkouts, which the program makes itself and which are no settings."""
MOST_FILES = 2000
MOST_BYTES = 16 << 20

Brought: TypeAlias = Mapping[str, str]
"""Files by their path from the top level of the project, each with the hash of its content."""


class Unclear(Exception):
    """What a folder would give cannot be told; the message says why."""


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
    try:
        found = brought(tree, cwd)
        if tree in trusted and matches(tree, found, trusted[tree]):
            return Trust({tree: trusted[tree]})
        others = [one for one in git.worktrees(cwd) if one != tree and one in trusted] if trusted else []
        for one in others:
            if matches(one, brought(one, one), trusted[one]) and _covers(one, trusted[one], tree, cwd):
                return Trust({one: trusted[one], tree: dict(found)})
    except Unclear:
        if tree in trusted and trusted[tree] is None:
            return Trust({tree: None})
    return Trust()


def matches(tree: str, found: Brought, trusted: Brought | None) -> bool:
    """Whether a project would give what was trusted: all that was at its top level, and nothing else anywhere."""
    if trusted is None:
        return True
    at_top = [path for path in trusted if path.startswith(NAMES)]
    return _is_part(found, trusted) and all(path in found for path in at_top)


def _is_part(found: Brought, trusted: Brought) -> bool:
    return all(trusted.get(path) == hash for path, hash in found.items())


def top_of(cwd: str) -> str:
    """The top level of the project that holds `cwd`."""
    return git.top(cwd) or os.path.realpath(cwd)


# --- what a folder would give


def brought(top: str, cwd: str, *, below: bool = False) -> dict[str, str]:
    """What programs started in `cwd` would use; with `below`, without what is at the top level and above."""
    found: dict[str, str] = _of_main(top) if not below else {}
    size = 0
    for path in _paths(top, os.path.realpath(cwd), below):
        for file in _files(path):
            name = _text(os.path.relpath(file, top))
            hash, read = _hash(file)
            found[name] = f"{found[name]} {hash}" if name in found else hash
            size += read
            if len(found) > MOST_FILES or size > MOST_BYTES:
                raise Unclear(f"{path} has more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB")
    return found


def _of_main(top: str) -> dict[str, str]:
    """What a worktree takes from the main checkout."""
    if not os.path.isfile(os.path.join(top, ".git")):
        return {}
    main = git.worktrees(top)[:1]
    path = os.path.join(*main, _LOCAL)
    return {_LOCAL: _hash(path)[0]} if main and main != [top] and os.path.lexists(path) else {}


def _paths(top: str, cwd: str, below: bool) -> Iterator[str]:
    own = _own_folders()
    for folder in _chain(cwd):
        inside = f"{folder}/".startswith(f"{top.rstrip('/')}/")
        if below and (folder == top or not inside):
            return
        for name in NAMES if inside else (_ABOVE,):
            path = os.path.join(folder, name)
            if os.path.lexists(path) and os.path.realpath(path) not in own:
                yield path


def _chain(folder: str) -> Iterator[str]:
    """A folder and all above it."""
    while True:
        yield folder
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above


def _own_folders() -> list[str]:
    """The programs' folders of this person, which are no project's even where a run is started in the home."""
    home = os.environ.get("HOME", "")
    named = [os.environ.get(name, "") for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME")]
    return [os.path.realpath(path) for path in (*named, f"{home}/.claude", f"{home}/.codex") if path]


def _files(path: str) -> Iterator[str]:
    """A file, or every file and link below a folder."""
    if os.path.islink(path) or not os.path.isdir(path):
        yield path
        return
    for folder, folders, names in _walk(path):
        folders[:] = [name for name in folders if not os.path.join(folder, name).endswith(_WORKTREES)]
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        yield from (os.path.join(folder, name) for name in sorted([*names, *links]))


def _walk(path: str) -> Iterator[tuple[str, list[str], list[str]]]:
    try:
        yield from os.walk(path, onerror=_unreadable)
    except RecursionError:
        raise Unclear(f"{path} is too deep") from None


def _unreadable(error: OSError) -> None:
    raise Unclear(f"{error.filename} cannot be read: {(error.strerror or '').lower()}")


def _hash(path: str) -> tuple[str, int]:
    """The hash of a file, and its size; a link is not followed, so its hash is that of where it leads."""
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            if os.path.basename(path) in _SETTINGS:
                raise Unclear(f"{path} is a link")
            return sha256(b"-> " + os.fsencode(os.readlink(path))).hexdigest(), 0
        data = files.contents(path, MOST_BYTES + 1)
    except OSError as error:
        raise Unclear(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    return sha256(data).hexdigest(), len(data)


def _text(name: str) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise Unclear(f"{name!a} is not UTF-8") from None
    return name


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
    except (OSError, msgspec.DecodeError) as error:
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
