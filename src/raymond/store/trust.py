"""The settings that come with a project, for Raymond and for agents' programs, and the projects that a person trusts.

A program that is started in a folder uses the settings it finds there: hooks, servers, variables. Trust in a project is
bound to the files of these settings as they were when it was given.
"""

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from itertools import chain
from time import time
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from raymond import errors, pasted
from raymond.digests import digest
from raymond.errors import UsageError
from raymond.store.home import Home
from raymond.system import files, folders, git

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

ForeignSettings: TypeAlias = Mapping[str, str]
"""Files by their path from the top level of the project, each with the hash of its content."""

SETTINGS_FILE = ".raymond/config.toml"
MOST_SETTINGS_BYTES = 1 << 20
"""Bytes of a settings file."""


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


def _covers(tree: str, trusted: ForeignSettings | None, top: str, cwd: str) -> bool:
    if top == tree:
        # The top level was looked at when the run began; a folder below it may have settings of its own.
        return trusted is None or _is_part(foreign_settings(top, cwd, below=True), trusted)
    if top not in git.worktrees(tree):
        return False
    return _is_part(foreign_settings(top, cwd), foreign_settings(tree, tree) if trusted is None else trusted)


def decide(tree: str, cwd: str, trusted: Mapping[str, dict[str, str] | None]) -> Trust:
    """Whether `trusted`, top levels with their files, make the project at `tree` trusted for a run in `cwd`."""
    if tree in trusted and trusted[tree] is None:
        return Trust({tree: None})
    others = [one for one in git.worktrees(cwd) if one != tree and one in trusted] if trusted else []
    if tree not in trusted and not others:
        return Trust()
    try:
        found = foreign_settings(tree, cwd)
        if tree in trusted and matches(found, trusted[tree]):
            return Trust({tree: trusted[tree]})
        for one in others:
            if matches(foreign_settings(one, one), trusted[one]) and _covers(one, trusted[one], tree, cwd):
                return Trust({one: trusted[one], tree: dict(found)})
    except Unclear:
        pass
    return Trust()


def matches(found: ForeignSettings, trusted: ForeignSettings | None) -> bool:
    """Whether a project would give what was trusted: all that was at its top level, and nothing else anywhere."""
    return trusted is None or not lapse(found, trusted)


class Change(Struct, frozen=True):
    """A file that is not as it was when the project was trusted."""

    path: str
    what: Literal["changed", "new", "gone"]


def lapse(found: ForeignSettings, trusted: ForeignSettings) -> list[Change]:
    """Why a project is no longer trusted; nothing while it is."""
    changes = [
        Change(path, "changed" if path in trusted else "new")
        for path, hash in found.items()
        if trusted.get(path) != hash
    ]
    changes += [Change(path, "gone") for path in trusted if path.startswith(NAMES) and path not in found]
    return sorted(changes, key=lambda one: one.path)


def _is_part(found: ForeignSettings, trusted: ForeignSettings) -> bool:
    return all(trusted.get(path) == hash for path, hash in found.items())


def top_of(cwd: str) -> str:
    """The top level of the project that holds `cwd`."""
    return git.top(cwd) or os.path.realpath(cwd)


# What a person trusts


class TrustedProject(Struct, omit_defaults=True):
    """A project that a person trusts."""

    files: dict[str, str]
    time: float = 0.0


def recorded(home: Home) -> dict[str, TrustedProject]:
    """Every trusted project, by its top level."""
    try:
        return msgspec.json.decode(files.contents(_path(home)), type=dict[str, TrustedProject])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        why = (error.strerror or str(error)).lower() if isinstance(error, OSError) else "it is damaged"
        hint = "remove it, then trust your projects again: raymond trust DIR"
        raise UsageError(f"{_path(home)} cannot be read: {why}", hint=hint) from None


def remember(home: Home, tree: str, found: ForeignSettings) -> None:
    """Trust a project with what it brings now."""
    home.make()
    _write(home, recorded(home) | {tree: TrustedProject(dict(found), round(time(), 3))})


def forget(home: Home, tree: str) -> bool:
    """Trust a project no longer; whether it was trusted."""
    kept = recorded(home)
    if kept.pop(tree, None) is None:
        return False
    _write(home, kept)
    return True


def _write(home: Home, records: Mapping[str, TrustedProject]) -> None:
    files.replace(_path(home), msgspec.json.encode(records) + b"\n", durable=True)


def _path(home: Home) -> str:
    return f"{home.path}/trusted.json"


# What programs find


class Unclear(Exception):
    """What a folder would give cannot be told; the message says why."""


def foreign_settings(top: str, cwd: str, *, below: bool = False, nested: bool = True) -> dict[str, str]:
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
            hash, read = _hash_file(file)
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
    return {_LOCAL: _hash_file(path)[0]} if main and main != [top] and os.path.lexists(path) else {}


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
    for count, (folder, inside, _) in enumerate(os.walk(top, onerror=_unseen)):
        if count > MOST_FOLDERS:
            raise Unclear(f"{top} has more than {MOST_FOLDERS} folders that git does not ignore")
        if _levels(top, folder) > _DEEPEST_FOLDER:
            raise Unclear(f"{top} has folders {_DEEPEST_FOLDER} levels deep")
        path = os.path.join(folder, _NESTED)
        if folder != top and os.path.lexists(path) and os.path.dirname(path) not in own:
            yield path
        inside[:] = [name for name in inside if name != ".git" and os.path.join(folder, name) not in ignored]
        for path in (os.path.join(folder, name) for name in inside):
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
    for folder, inside, names in os.walk(path, onerror=_unreadable):
        if _levels(path, folder) >= DEEPEST:
            raise Unclear(f"{path} has folders {DEEPEST} levels deep")
        inside[:] = [name for name in inside if os.path.join(folder, name) != checkouts]
        links = [name for name in inside if os.path.islink(os.path.join(folder, name))]
        yield from (os.path.join(folder, name) for name in sorted([*names, *links]))


def _levels(above: str, folder: str) -> int:
    return folder.count("/") - above.count("/")


def _unreadable(error: OSError) -> None:
    raise Unclear(f"{error.filename} cannot be read: {(error.strerror or '').lower()}")


def _hash_file(path: str) -> tuple[str, int]:
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


# The settings of the project for Raymond


def settings_of_person(environment: Mapping[str, str] = os.environ) -> str:
    """Where a person keeps their own settings; empty without a home."""
    home = environment.get("HOME", "")
    base = environment.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else "")
    return f"{base}/raymond/config.toml" if base else ""


def read_settings(tree: str) -> bytes:
    """What the file says; nothing when there is none. One that is a link, or somebody else's, is refused."""
    path = f"{tree}/{SETTINGS_FILE}"
    try:
        with folders.below(tree, ".raymond") as fd:
            for owner in (os.lstat("config.toml", dir_fd=fd).st_uid, os.fstat(fd).st_uid):
                _check_owner(tree, path, owner)
            return files.contents("config.toml", MOST_SETTINGS_BYTES + 1, inside=fd)
    except (FileNotFoundError, NotADirectoryError):
        _refuse_link(tree)
        return b""
    except OSError as error:
        _refuse_link(tree)
        if errors.is_passing_fault(error):
            raise OSError(error.errno, error.strerror, path) from None
        if isinstance(error, PermissionError) and _is_hidden(tree):
            return b""
        why = (error.strerror or str(error)).lower()
        raise UsageError(f"{path} cannot be read: {why}", hint="it has to be a file, and no link") from None


def _is_hidden(tree: str) -> bool:
    """Whether somebody else has made the folder for themselves: it has no settings for us."""
    with contextlib.suppress(OSError):
        return os.lstat(f"{tree}/.raymond").st_uid != os.geteuid()
    return False


def _refuse_link(tree: str) -> None:
    if os.path.islink(f"{tree}/.raymond"):
        raise UsageError(f"{tree}/.raymond is a link", hint="make it a folder: what is in it belongs to the project")


def _check_owner(tree: str, path: str, owner: int) -> None:
    """Whoever can write settings decides what runs may do."""
    if git.trusts_owner(owner, tree):
        return
    trust = f"git config --global --add safe.directory {pasted.word(tree, 'DIR')}"
    raise UsageError(
        f"{path} belongs to {files.owner_name(owner)}, so its settings are not used",
        hint=f"remove {os.path.dirname(path)}, or if this is a repository that you trust: {trust}",
    )
