"""Become an ordinary user, then a command: `as_user.py UID PATH:PATH COMMAND...`.

The paths are those that the command needs and that may lie in a folder which only root can enter, as an interpreter below
/root does. In a mount namespace of the command's own, such a folder holds nothing but them.
"""

import ctypes
import os
import sys

_BIND, _PRIVATE, _NEWNS = 4096 | 16384, 16384 | 262144, 0x00020000
_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Give up root, and go on as the command."""
    user, needed, argv = int(sys.argv[1]), sys.argv[2].split(":"), sys.argv[3:]
    if closed := {folder for path in needed if (folder := _closed(path))}:
        _call(_libc.unshare(_NEWNS))
        _mount("none", "/", "", _PRIVATE)
        opened = {path: os.open(path, os.O_PATH) for path in needed if _closed(path)}
        for folder in closed:
            _mount("tmpfs", folder, "tmpfs", 0)
        for path, fd in opened.items():
            os.makedirs(path, exist_ok=True)
            _mount(f"/proc/self/fd/{fd}", path, "", _BIND)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    os.execvp(argv[0], argv)


def _closed(path: str) -> str:
    """The outermost folder on the way to a path that others cannot enter; empty when there is none."""
    parts = path.split("/")
    folders = ("/".join(parts[:length]) for length in range(2, len(parts) + 1))
    return next((folder for folder in folders if not os.stat(folder).st_mode & 0o001), "")


def _mount(source: str, at: str, kind: str, flags: int) -> None:
    _call(_libc.mount(source.encode(), at.encode(), kind.encode(), flags, None))


def _call(result: int) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


if __name__ == "__main__":
    main()
