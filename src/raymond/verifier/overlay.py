"""An overlay: a command sees the tree at its own path with some files put back; what it writes goes elsewhere.

The process that runs this file enters namespaces of its own, mounts the overlay and becomes the command. It needs the
standard library alone, so that it starts fast, and nothing of the tree.
"""

import contextlib
import ctypes
import json
import os
import shutil
import sys
import time
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
        path = os.path.join(top, one["path"])
        if one["kind"] == "nothing":
            _remove(path)
            continue
        _make_room(os.path.dirname(path), top)
        _remove(path)
        if one["kind"] == "link":
            os.symlink(one["source"], path)
            continue
        shutil.copyfile(one["source"], path)
        os.chmod(path, one["mode"] & 0o7777)
        # A file system counts in ticks, behind the clock: what was built a moment ago must not be as new as this.
        moment = one["mtime"] or time.time_ns()
        os.utime(path, ns=(moment, moment))


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(path)


def _make_room(folder: str, top: str) -> None:
    """Make a folder where something else may stand now."""
    below = os.path.relpath(folder, top)
    path = top
    for name in () if below == "." else below.split("/"):
        path = os.path.join(path, name)
        if os.path.islink(path) or not os.path.isdir(path):
            _remove(path)
            os.mkdir(path)


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
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
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


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode("ascii"))
    finally:
        os.close(fd)


if __name__ == "__main__":
    main()
