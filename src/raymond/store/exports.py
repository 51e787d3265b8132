"""What a run leaves in its project, below `.raymond`: for people and agents to read. Raymond itself reads none of it.

Whoever can write in the project can put anything there, so no link is followed.
"""

import contextlib
import errno
import os
from collections.abc import Iterator

from raymond.system import files, folders, git
from raymond.system.files import trouble

_TOP = ".raymond"
_REMOVED_FROM = ("tasks", "debug")
"""The folders that hold folders of runs."""
_IGNORE = b"*\n"
"""What a project's git should see of it: nothing."""


def top(tree: str) -> str:
    """The folder of a project that runs write to."""
    return f"{tree}/{_TOP}"


def tasks(tree: str, id: str) -> str:
    """The folder that holds the task folders of a run."""
    return f"{tree}/{_TOP}/tasks/{id}"


def debug(tree: str) -> str:
    """The folder that holds what `--debug` keeps."""
    return f"{tree}/{_TOP}/debug"


def log(tree: str, loop: str) -> str:
    """The file with the lines of a loop."""
    return f"{tree}/{_TOP}/logs/{loop}.log"


def state_file(tree: str, id: str) -> str:
    """The state file of a run, as it is shown to others."""
    return f"{tree}/{_TOP}/workflows/{id}.json"


def fixed(tree: str) -> list[str]:
    """What agents may read and not change."""
    return [f"{tree}/{_TOP}/config.toml", f"{tree}/{_TOP}/workflows"]


def put_state(tree: str, id: str, data: bytes | bytearray) -> None:
    """Write the state file of a run."""
    try:
        with _made(tree, "workflows") as fd:
            folders.put(fd, f"{id}.json", data)
    except OSError as error:
        raise trouble(state_file(tree, id), error) from None


def make(path: str, tree: str) -> None:
    """Create a folder below `.raymond`, and what is missing above it."""
    _, *names = os.path.relpath(path, tree).split("/")
    try:
        with _made(tree, *names):
            pass
    except OSError as error:
        raise trouble(path, error) from None


def append(path: str, tree: str, data: bytes, *, new: bool = False) -> None:
    """Write to the end of a file below `.raymond`, one that with `new` does not exist; OSError when that fails."""
    folder, name = os.path.split(path)
    _, *names = os.path.relpath(folder, tree).split("/")
    try:
        with _made(tree, *names) as fd:
            folders.append(fd, name, data, new=new)
    except OSError as error:
        raise OSError(error.errno, error.strerror, folder) from None


@contextlib.contextmanager
def _made(tree: str, *names: str) -> Iterator[int]:
    """A folder below `.raymond`, open while the block runs and created if it is missing; git does not see it."""
    with folders.below(tree, _TOP, make=True) as top:
        owner = os.fstat(top).st_uid
        if not git.trusts_owner(owner, tree):
            raise OSError(errno.EPERM, f"it belongs to {files.owner_name(owner)}")
        _ignore(top)
        with folders.down(top, *names, make=True) as fd:
            yield fd


def _ignore(top: int) -> None:
    with contextlib.suppress(FileExistsError):
        folders.append(top, ".gitignore", _IGNORE, new=True)


def remove(tree: str, id: str) -> None:
    """Remove everything a run has left in its project."""
    import re

    form = re.compile(rf"{re.escape(id)}_\d{{8}}_\d{{6}}(_\d+)?")
    state = re.compile(rf"{re.escape(id)}\.json(\.[0-9a-f]{{8}}\.tmp)?")
    for folder, mine in (("tasks", re.compile(re.escape(id))), ("debug", form), ("workflows", state)):
        try:
            with folders.below(tree, _TOP, folder) as fd:
                for name in os.listdir(fd):
                    if mine.fullmatch(name):
                        folders.remove(name, fd)
        except OSError as error:
            # What is not there, or is a link, is not ours.
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise trouble(f"{tree}/{_TOP}/{folder}", error) from None


def leftovers(tree: str, before: float) -> list[str]:
    """What a removal that was cut short has left, if nobody has changed it since `before`."""
    found: list[str] = []
    for folder in _REMOVED_FROM:
        with contextlib.suppress(OSError), folders.below(tree, _TOP, folder) as fd:
            names = [name for name in sorted(os.listdir(fd)) if folders.is_leftover(name)]
            old = [name for name in names if os.lstat(name, dir_fd=fd).st_mtime < before]
            found += [f"{tree}/{_TOP}/{folder}/{name}" for name in old]
    return found


def remove_leftover(tree: str, path: str) -> bool:
    """Remove one of them; False when `path` is in another place."""
    folder, name = os.path.split(os.path.relpath(path, f"{tree}/{_TOP}"))
    if folder not in _REMOVED_FROM or not folders.is_leftover(name):
        return False
    with folders.below(tree, _TOP, folder) as fd:
        folders.remove(name, fd)
    return True
