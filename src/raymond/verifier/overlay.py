"""An overlay: a command sees the tree at its own path with some files put back; what it writes goes elsewhere.

The process that runs this file enters namespaces of its own, mounts the overlay and becomes the command. It needs the
standard library alone, so that it starts fast, and nothing of the tree.
"""

import contextlib
import ctypes
import errno
import json
import os
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from typing import Any

_NEWNS, _NEWUSER = 0x00020000, 0x10000000
_PRIVATE = 0x4000 | 0x40000  # MS_REC | MS_PRIVATE
FAILED = 125
"""The exit code when there is no overlay."""


def put_back(files: list[dict[str, Any]], top: str) -> None:
    """Give the files below `top` the contents that they are to have; `kind` is file, link or nothing.

    A file without an `mtime` is new.
    """
    for one in files:
        *folders, name = one["path"].split("/")
        with _opened(top, folders, make=one["kind"] != "nothing") as folder:
            if folder is None:
                continue
            _remove(name, folder)
            if one["kind"] == "link":
                os.symlink(one["source"], name, dir_fd=folder)
            elif one["kind"] == "file":
                _write(one, name, folder)


@contextlib.contextmanager
def _opened(top: str, folders: list[str], *, make: bool) -> Iterator[int | None]:
    """The folder of a file below `top`, reached through no link; what stands in the way of one that is made is removed.

    Nobody needs the folder of a file that is not to be there; a link on the way to it goes, because it hid the folder.
    """
    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in folders:
            below = _folder(name, fd)
            if below is None and (make or _is_link(name, fd)):
                _remove(name, fd)
            if below is None and make:
                os.mkdir(name, dir_fd=fd)
                below = _folder(name, fd)
            if below is None:
                yield None
                return
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


def _folder(name: str, above: int) -> int | None:
    """A folder; None when there is something else, or nothing. OSError: it is one that we may not enter."""
    try:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise
        return None


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _write(one: dict[str, Any], name: str, folder: int) -> None:
    with open(one["source"], "rb") as source:
        fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder)
        with open(fd, "wb") as file:
            shutil.copyfileobj(source, file)
            file.flush()
            os.fchmod(fd, one["mode"] & 0o7777)
            # A file system counts in ticks, behind the clock: what was built a moment ago must not be as new as this.
            moment = one["mtime"] or time.time_ns()
            os.utime(fd, ns=(moment, moment))


def _remove(name: str, folder: int) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except (IsADirectoryError, PermissionError):
        shutil.rmtree(name, dir_fd=folder)
    except FileNotFoundError:
        pass


def main() -> None:
    """Become the command of the plan whose path is given."""
    with open(sys.argv[1], encoding="utf-8") as file:
        plan = json.load(file)
    try:
        enter(plan["top"], plan["upper"], plan["work"])
        if not os.path.exists(plan["ready"]):
            put_back(plan["files"], plan["top"])
            with open(plan["ready"], "x", encoding="ascii"):
                pass
        os.chdir(plan["cwd"])
        os.execvp(sys.argv[2], sys.argv[2:])
    except OSError as error:
        print(f"no overlay: {error}", file=sys.stderr)
        sys.exit(FAILED)


def enter(top: str, upper: str, work: str) -> None:
    """Go into namespaces in which `top` is an overlay of itself and `upper`."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.geteuid(), os.getegid()
    options = ""
    if user != 0 or libc.unshare(_NEWNS) != 0:
        _call(libc.unshare(_NEWUSER | _NEWNS))
        _say("/proc/self/setgroups", "deny")
        _say("/proc/self/uid_map", f"{user} {user} 1")
        _say("/proc/self/gid_map", f"{group} {group} 1")
        options = ",userxattr"
    _call(libc.mount(b"none", b"/", None, _PRIVATE, None))
    # A path may have any character, and options are separated by commas and colons.
    places = [os.open(path, os.O_PATH | os.O_DIRECTORY) for path in (top, upper, work)]
    lower, above, aside = (f"/proc/self/fd/{fd}" for fd in places)
    data = f"lowerdir={lower},upperdir={above},workdir={aside}{options}"
    try:
        _call(libc.mount(b"overlay", os.fsencode(top), b"overlay", 0, data.encode()))
    finally:
        for fd in places:
            os.close(fd)


def _call(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _say(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode("ascii"))
    finally:
        os.close(fd)


if __name__ == "__main__":
    main()
