"""The settings that come with a project: `.raymond/config.toml`, which anybody may have put there."""

import contextlib
import os
from collections.abc import Mapping

from raymond import errors, pasted
from raymond.errors import UsageError
from raymond.store import owners
from raymond.system import files, folders

NAME = ".raymond/config.toml"
MOST = 1 << 20
"""Bytes of a settings file."""


def of_person(environment: Mapping[str, str] = os.environ) -> str:
    """Where a person keeps their own settings; empty without a home."""
    home = environment.get("HOME", "")
    base = environment.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else "")
    return f"{base}/raymond/config.toml" if base else ""


def read(tree: str) -> bytes:
    """What the file says; nothing when there is none. One that is a link, or somebody else's, is refused."""
    path = f"{tree}/{NAME}"
    try:
        with folders.below(tree, ".raymond") as fd:
            for owner in (os.lstat("config.toml", dir_fd=fd).st_uid, os.fstat(fd).st_uid):
                _check_owner(tree, path, owner)
            return files.contents("config.toml", MOST + 1, inside=fd)
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
    if owners.is_trusted(owner, tree):
        return
    trust = f"git config --global --add safe.directory {pasted.word(tree, 'DIR')}"
    raise UsageError(
        f"{path} belongs to {owners.name(owner)}, so its settings are not used",
        hint=f"remove {os.path.dirname(path)}, or if this is a repository that you trust: {trust}",
    )
