"""Folders by descriptor: no link is followed, so that nothing outside of them can be read, written or removed."""

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator

from raymond.system.files import write_all

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LEVELS = 50
"""How deep a folder is followed at once: every level takes a descriptor."""
_DEEP, _OLD = ".deep.", ".old"
_OVER = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def opened(path: str, *, inside: int | None = None) -> Iterator[int]:
    """A folder, open while the block runs; a link in its place is refused."""
    fd = os.open(path, _FOLDER, dir_fd=inside)
    try:
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def below(path: str, *names: str, make: bool = False) -> Iterator[int]:
    """The folder `names` below `path`, open while the block runs; with `make`, missing ones are created."""
    with opened(path) as top, down(top, *names, make=make) as fd:
        yield fd


@contextlib.contextmanager
def down(fd: int, *names: str, make: bool = False, mode: int = 0o700) -> Iterator[int]:
    """The same below an open folder."""
    with contextlib.ExitStack() as stack:
        for name in names:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, mode, dir_fd=fd)
            fd = stack.enter_context(opened(name, inside=fd))
        yield fd


def put(folder: int, name: str, data: bytes | bytearray) -> None:
    """Replace the content of a file in one go; a link in its place is replaced, not followed."""
    aside = f"{name}.{os.urandom(4).hex()}.tmp"
    fd = os.open(aside, _NEW, 0o600, dir_fd=folder)
    try:
        write_all(fd, data)
        os.rename(aside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(aside, dir_fd=folder)
        raise
    finally:
        os.close(fd)


def append(folder: int, name: str, data: bytes, *, new: bool = False) -> None:
    """Write to the end of a file, one that with `new` does not exist; a link or a pipe is refused."""
    fd = os.open(name, _OVER | (os.O_EXCL if new else os.O_APPEND), 0o600, dir_fd=folder)
    try:
        _check_own(fd, name)
        write_all(fd, data)
    finally:
        os.close(fd)


def _check_own(fd: int, name: str) -> None:
    """Refuse a pipe or a device, and a file that has another name elsewhere."""
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        raise OSError(errno.EINVAL, "not a file of its own", name)


def write_below(top: str, name: str, text: str) -> None:
    """Write a file of a work tree, with the modes that others have there; no link leads out of `top`, a real path."""
    path = os.path.join(top, name)
    try:
        with opened(top) as fd:
            if _path_of(fd, top) != top:
                # It was checked when an agent changed to it; a link may have taken its place since.
                raise NotADirectoryError(errno.ENOTDIR, "it leads elsewhere now")
            with down(fd, *_inside(top, os.path.dirname(path)), make=True, mode=0o777) as folder:
                _overwrite(folder, os.path.basename(path), text.encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None


TASK_FOLDER = "{{task_folder}}/"


def write_for(cwd: str, task_folder: str, name: str, text: str) -> None:
    """Write a file of an agent: below its directory, or below its task folder if the name begins with that."""
    inside = name.removeprefix(TASK_FOLDER)
    if inside == name:
        write_below(cwd, name, text)
    elif task_folder:
        write_below(task_folder, inside, text)
    else:
        raise FileNotFoundError(errno.ENOENT, "no state of the workflow uses {{task_folder}}", name)


def _path_of(fd: int, given: str) -> str:
    """Where a folder that was opened as `given` really is."""
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except FileNotFoundError:
        return os.path.realpath(given)


def _inside(top: str, folder: str) -> list[str]:
    """The names that lead from `top` to a folder below it; links on the way may lead to other places in it."""
    real = os.path.realpath(folder)
    if os.path.commonpath((real, top)) != top:
        raise OSError(errno.EXDEV, "it is outside of the directory")
    return [name for name in os.path.relpath(real, top).split("/") if name != "."]


def _overwrite(folder: int, name: str, data: bytes | bytearray) -> None:
    fd = os.open(name, _OVER, 0o666, dir_fd=folder)
    try:
        _check_own(fd, name)
        os.ftruncate(fd, 0)
        write_all(fd, data)
    finally:
        os.close(fd)


def remove(name: str, inside: int) -> None:
    """Remove a file, a link or a whole folder, however deep; one that is missing is fine."""
    pending = [name]
    while pending:
        _remove(pending.pop(), inside, inside, _LEVELS, pending)


def remove_path(path: str) -> None:
    """The same by its path; what a link in it points to stays."""
    with contextlib.suppress(FileNotFoundError), opened(os.path.dirname(path)) as above:
        remove(os.path.basename(path), above)


def is_leftover(name: str) -> bool:
    """Whether a removal that was cut short may have given something this name."""
    number = name.removeprefix(_DEEP).removesuffix(_OLD)
    return name == f"{_DEEP}{number}{_OLD}" and len(number) == 8 and not number.strip("0123456789abcdef")


def _remove(name: str, inside: int, top: int, levels: int, pending: list[str]) -> None:
    """Remove what can be reached within some `levels`; what is deeper is moved to the `top`, to be removed next."""
    try:
        if not stat.S_ISDIR(os.lstat(name, dir_fd=inside).st_mode):
            os.unlink(name, dir_fd=inside)
        elif not levels:
            with _opened_up(name, inside):
                pass  # a folder that cannot be written cannot be moved either
            pending.append(f"{_DEEP}{os.urandom(4).hex()}{_OLD}")
            os.rename(name, pending[-1], src_dir_fd=inside, dst_dir_fd=top)
        else:
            with _opened_up(name, inside) as fd:
                for entry in os.listdir(fd):
                    _remove(entry, fd, top, levels - 1, pending)
            os.rmdir(name, dir_fd=inside)
    except FileNotFoundError:
        return  # somebody else removed it


@contextlib.contextmanager
def _opened_up(name: str, inside: int) -> Iterator[int]:
    """A folder that is about to be emptied; whoever filled it may have closed it."""
    try:
        fd = os.open(name, _FOLDER, dir_fd=inside)
    except PermissionError:
        _make_readable(name, inside)
        fd = os.open(name, _FOLDER, dir_fd=inside)
    try:
        with contextlib.suppress(PermissionError):
            os.fchmod(fd, 0o700)
        yield fd
    finally:
        os.close(fd)


def _make_readable(name: str, inside: int) -> None:
    """Change the mode of a folder that cannot be opened; not that of what a link in its place leads to."""
    if not hasattr(os, "O_PATH"):
        return os.chmod(name, 0o700, dir_fd=inside, follow_symlinks=False)
    fd = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=inside)
    try:
        os.chmod(f"/proc/self/fd/{fd}", 0o700)
    finally:
        os.close(fd)


def share(path: str, *, force: bool = False) -> int:
    """A folder that stays open and that nobody can `claim` meanwhile. BlockingIOError: somebody has claimed it."""
    fd = os.open(path, _FOLDER)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        if not force:
            os.close(fd)
            raise
    except OSError:
        pass  # a file system without such locks, on which nobody can claim it either
    return fd


def claim(fd: int) -> bool:
    """Whether nobody shares the open folder; from then on nobody can, until it is closed."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def is_folder(path: str) -> bool:
    """Whether `path` is a folder itself, and not a link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
