"""What a folder would give to agents' programs: the settings they find there, each with the hash of its content.

A program that is started in a folder uses the settings it finds there: hooks, servers, variables.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TypeAlias

from raymond.digests import digest
from raymond.system import files, git

NAMES = (".claude", ".codex", ".mcp.json")
"""Where the programs look for settings of a project."""
_ABOVE = ".mcp.json"
"""What is also looked for in every folder above."""
_SETTINGS = (".claude", ".codex", ".mcp.json", "settings.json", "settings.local.json", "config.toml", "hooks.json")
"""What must not be a link: its content could change unseen."""
_LOCAL = ".claude/settings.local.json"
"""Claude Code also takes the one of the main checkout in every other worktree."""
_WORKTREES = "worktrees"
"""In `.claude`: whole checkouts, which the program makes itself and which are no settings."""
_NESTED = ".claude/skills"
"""What Claude Code also takes from a folder below, once an agent uses a file there. Skills can have hooks."""
MOST_FILES = 2000
MOST_BYTES = 16 << 20
DEEPEST = 50
MOST_FOLDERS = 50_000
_DEEPEST_FOLDER = 500

Brought: TypeAlias = Mapping[str, str]
"""Files by their path from the top level of the project, each with the hash of its content."""


class Unclear(Exception):
    """What a folder would give cannot be told; the message says why."""


def brought(top: str, cwd: str, *, below: bool = False, nested: bool = True) -> dict[str, str]:
    """What programs started in `cwd` would use; with `below`, without what is at the top level and above.

    With `nested`, also what they would use once an agent works in other folders of the project.
    """
    found: dict[str, str] = _of_main(top) if not below else {}
    size, seen, targets = 0, set[str](), list[str]()
    own = _paths(top, os.path.realpath(cwd), below)
    for path in chain(own, _nested(top) if nested and not below else (), targets):
        for file in _files(path):
            if file in seen:
                continue
            seen.add(file)
            name = _text(os.path.relpath(file, top))
            hash, read = _hash(file)
            found[name] = f"{found[name]} {hash}" if name in found else hash
            size += read
            if len(found) > MOST_FILES or size > MOST_BYTES:
                raise Unclear(f"{path} has more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB")
            if os.path.islink(file):
                targets.append(_target(file, top))
    return found


def _target(link: str, top: str) -> str:
    """What a link leads to, which counts as brought too; nothing outside of the project can be bound to its content."""
    target = os.path.realpath(link)
    if not f"{target}/".startswith(f"{top.rstrip('/')}/"):
        raise Unclear(f"{link} is a link that leads out of the project")
    return target


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


def _nested(top: str) -> Iterator[str]:
    """The skills in folders of the project, except for folders that git ignores, as the program does."""
    ignored, own = {*git.ignored_folders(top), *git.worktrees(top)} - {top}, _own_folders()
    for count, (folder, folders, _) in enumerate(os.walk(top, onerror=_unseen)):
        if count > MOST_FOLDERS:
            raise Unclear(f"{top} has more than {MOST_FOLDERS} folders that git does not ignore")
        if _levels(top, folder) > _DEEPEST_FOLDER:
            raise Unclear(f"{top} has folders {_DEEPEST_FOLDER} levels deep")
        path = os.path.join(folder, _NESTED)
        if folder != top and os.path.lexists(path) and os.path.dirname(path) not in own:
            yield path
        folders[:] = [name for name in folders if name != ".git" and os.path.join(folder, name) not in ignored]
        for path in (os.path.join(folder, name) for name in folders):
            if os.path.islink(path) and os.path.lexists(os.path.join(path, _NESTED)):
                raise Unclear(f"{path} is a link to a folder with skills")


def _unseen(error: OSError) -> None:
    """A folder that can be entered and not listed may hold what a program finds by name."""
    if os.access(error.filename, os.X_OK):
        _unreadable(error)


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
        if os.path.lexists(path):  # a link may lead nowhere
            yield path
        return
    checkouts = os.path.join(path, _WORKTREES) if os.path.basename(path) == ".claude" else ""
    for folder, folders, names in os.walk(path, onerror=_unreadable):
        if _levels(path, folder) >= DEEPEST:
            raise Unclear(f"{path} has folders {DEEPEST} levels deep")
        folders[:] = [name for name in folders if os.path.join(folder, name) != checkouts]
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        yield from (os.path.join(folder, name) for name in sorted([*names, *links]))


def _levels(above: str, folder: str) -> int:
    return folder.count("/") - above.count("/")


def _unreadable(error: OSError) -> None:
    raise Unclear(f"{error.filename} cannot be read: {(error.strerror or '').lower()}")


def _hash(path: str) -> tuple[str, int]:
    """The hash of a file, and its size; that of a link is the hash of what it says."""
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            if os.path.basename(path) in _SETTINGS:
                raise Unclear(f"{path} is a link")
            return digest(b"-> " + os.fsencode(os.readlink(path))), 0
        data = files.contents(path, MOST_BYTES + 1)
    except OSError as error:
        raise Unclear(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None
    return digest(data), len(data)


def _text(name: str) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise Unclear(f"{name!a} is not UTF-8") from None
    return name
