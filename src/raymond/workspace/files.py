"""Files of a tree that Raymond writes or removes: no link is followed, whatever a step has put in the way."""

import contextlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping

from raymond.system import folders
from raymond.system.files import make_private
from raymond.workspace.harvest import Stat, folders_of, seen
from raymond.workspace.repository import Repository
from raymond.workspace.slot import Slot


def stat_of(slot: Slot, path: bytes) -> Stat:
    """How a file is that was just written."""
    return seen(os.lstat(os.path.join(os.fsencode(slot.tree), path)))


def remove(slot: Slot, gone: Iterable[bytes], stay: Iterable[bytes]) -> None:
    """Remove files, and the folders in which nothing of what stays is left."""
    needed = folders_of(stay)
    with folders.opened(slot.tree) as top:
        for path in {_outermost(path, needed) for path in gone}:
            remove_one(top, path)


def _outermost(path: bytes, needed: Collection[bytes]) -> bytes:
    """A file that goes, or the folder that goes with it."""
    while (folder := os.path.dirname(path)) and folder not in needed:
        path = folder
    return path


def _split(path: bytes) -> tuple[list[str], str]:
    *above, name = os.fsdecode(path).split("/")
    return above, name


def remove_one(top: int, path: bytes) -> None:
    """Remove a file or folder below an open folder."""
    above, name = _split(path)
    with contextlib.suppress(FileNotFoundError, NotADirectoryError), folders.down(top, *above) as folder:
        folders.remove(name, folder)


def unlink(slot: Slot, gone: Iterable[bytes]) -> None:
    """Remove files, and the folders that are empty then."""
    with folders.opened(slot.tree) as top:
        for path in gone:
            above, name = _split(path)
            with contextlib.suppress(OSError), folders.down(top, *above) as folder:
                os.unlink(name, dir_fd=folder)
            while above:
                *rest, name = above
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    try:
                        with folders.down(top, *rest) as folder:
                            os.rmdir(name, dir_fd=folder)
                    except OSError:
                        break
                above = rest


def write(slot: Slot, repository: Repository, missing: Mapping[bytes, bytes]) -> None:
    """Write files: path -> mode and blob."""
    if not missing:
        return
    staging = f"{slot.at}/.raymond" if slot.at else slot.path  # on the disk of the tree
    make_private(staging)
    with folders.opened(slot.tree) as top, folders.opened(staging) as beside:
        folders.remove("files", beside)
        make_private(f"{staging}/files")
        repository.write_out(missing, f"{staging}/files")
        for folder, names in _by_folder(missing):
            with (
                folders.down(beside, "files", *folder) as source,
                _cleared(top, folder),
                folders.down(top, *folder, make=True, mode=0o777) as target,
            ):
                for name in names:
                    with contextlib.suppress(IsADirectoryError):
                        os.rename(name, name, src_dir_fd=source, dst_dir_fd=target)
                        continue
                    folders.remove(name, target)
                    os.rename(name, name, src_dir_fd=source, dst_dir_fd=target)
        folders.remove("files", beside)


@contextlib.contextmanager
def _cleared(top: int, folder: list[str]) -> Iterator[None]:
    """Nothing stands where a folder is needed: a pipe, a link or a file that a step has left there is removed."""
    for depth, name in enumerate(folder):
        with folders.down(top, *folder[:depth]) as above:
            try:
                found = os.stat(name, dir_fd=above, follow_symlinks=False)
            except FileNotFoundError:
                break
            if not stat.S_ISDIR(found.st_mode):
                os.unlink(name, dir_fd=above)
                break
    yield


def _by_folder(paths: Iterable[bytes]) -> Iterator[tuple[list[str], list[str]]]:
    found: dict[tuple[str, ...], list[str]] = {}
    for path in paths:
        above, name = _split(path)
        found.setdefault(tuple(above), []).append(name)
    yield from ((list(above), names) for above, names in found.items())
