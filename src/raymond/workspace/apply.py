"""Bring the work of a run into the person's checkout.

Each file is compared with what the run took along, not with HEAD: what the person changed since is never overwritten.
Either everything is written or nothing. After a kill, the same command finishes it: what is there already stays.
"""

import contextlib
import fcntl
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from raymond.errors import WorkspaceError
from raymond.system import folders, git
from raymond.system.files import contents, make_private
from raymond.workspace import harvest, publish
from raymond.workspace.repository import Repository

_NOTHING = b""
_OTHER = b"something else"
Unite = Callable[[str, str], str]
"""What a file says that two sides have changed: the person's text, and that of the work."""


class Done(Struct, frozen=True):
    """What was written, or what is in the way."""

    changed: list[str]
    there: int
    """How many files were there already."""
    conflicts: list[str]


def apply(top: str, run: str, base: str, tip: str, united: Mapping[str, Unite] = {}) -> Done:
    """Write what changed from commit `base` to commit `tip`; what an earlier call wrote may be changed again.

    Files that are `united` may have changed on both sides.
    """
    with _staging(top, f"apply-{run}") as staged:
        repository = Repository(os.path.join(staged, "git"), os.path.join(staged, "rules"))
        make_private(os.path.join(staged, "files"))
        make_private(repository.worktree)
        repository.make(top, git.head(top))
        applied = f"refs/raymond/{run}/applied"
        done = _apply(repository, top, staged, [base, *publish.held(top, applied)], tip, united)
        if not done.conflicts:
            publish.hold(repository, top, applied, tip, tip)
        return done


@contextlib.contextmanager
def _staging(top: str, name: str) -> Iterator[str]:
    """A folder on the disk of the checkout for what is about to be written there, one at a time."""
    above = os.path.join(top, ".raymond")
    make_private(above)
    with folders.opened(above) as fd:
        # Git holds the lock, too: after a kill it is free when git has ended.
        os.set_inheritable(fd, True)
        fcntl.flock(fd, fcntl.LOCK_EX)
        folders.remove(name, fd)  # what a killed process has left
        try:
            yield os.path.join(above, name)
        finally:
            folders.remove(name, fd)


def _apply(
    repository: Repository, top: str, staged: str, before: list[str], tip: str, united: Mapping[str, Unite]
) -> Done:
    """Write what differs from the commits `before`; a file that is as one of them has it was not changed by anybody."""
    root = os.fsencode(top)
    repository.ask("read-tree", before[0])
    rules = b"".join(path + b"\0" for path in _rules(repository))
    repository.ask("checkout-index", "-z", "--stdin", given=rules, worktree=repository.worktree)
    changes = [repository.changes(one, tip) for one in before]
    wanted = {path: new for one in changes for path, (_, new) in one.items()}
    seen = {path: _look(root, path) for path in wanted}
    standing = _standing(repository, top, staged, wanted)
    ours = {path: {new, *(one[path][0] for one in changes if path in one)} for path, new in wanted.items()}
    conflicts = [path for path in wanted if standing[path] not in ours[path]]
    for path in [one for one in conflicts if os.fsdecode(one) in united and wanted[one] and standing[one] != _OTHER]:
        mode, blob = wanted[path].split()
        mine = contents(os.fsdecode(os.path.join(root, path))).decode("utf-8", "surrogateescape")
        theirs = repository.ask("cat-file", "blob", blob.decode("ascii")).decode("utf-8", "surrogateescape")
        both = united[os.fsdecode(path)](mine, theirs)
        wanted[path] = repository.put(mode, both.encode("utf-8", "surrogateescape"))
        conflicts.remove(path)
    missing = {path: new for path, new in wanted.items() if standing[path] != new}
    if not conflicts and missing:
        _check_writable(root, missing)
        repository.write_out({path: new for path, new in missing.items() if new}, f"{staged}/files")
        conflicts = [path for path in missing if _look(root, path) != seen[path]]  # that has taken a while
    if conflicts:
        return Done([], 0, sorted(map(os.fsdecode, conflicts)))
    # First what goes: a folder may take the place of a file.
    for path in sorted(missing, key=lambda path: missing[path] != _NOTHING):
        if _look(root, path) != seen[path]:
            raise WorkspaceError(f"you have just changed {os.fsdecode(path)}", hint="the same command again says more")
        if missing[path] == _NOTHING:
            _remove(root, path)
            continue
        target = os.path.join(root, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        _remove_empty(target)
        os.replace(os.path.join(os.fsencode(f"{staged}/files"), path), target)
    return Done(sorted(map(os.fsdecode, missing)), len(wanted) - len(missing), [])


def _look(root: bytes, path: bytes) -> tuple[int, ...] | None:
    """By what it is seen that a file was changed; None when there is none."""
    if _obstacle(root, path):
        return None
    try:
        found = os.lstat(os.path.join(root, path))
    except OSError:
        return None
    is_folder = stat.S_ISDIR(found.st_mode)
    return None if is_folder else (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _check_writable(root: bytes, paths: Iterable[bytes]) -> None:
    """Refuse before anything is written where not everything can be."""
    for folder in {os.path.dirname(path) for path in paths}:
        while folder and not os.path.isdir(os.path.join(root, folder)):
            folder = os.path.dirname(folder)
        if not os.access(os.path.join(root, folder), os.W_OK | os.X_OK):
            raise WorkspaceError(f"nothing was written: {os.fsdecode(folder) or '.'} cannot be written")


def _rules(repository: Repository) -> list[bytes]:
    """The files with attributes in the index."""
    tracked = repository.ask("ls-files", "-z").split(b"\0")
    return [path for path in tracked if os.path.basename(path) == b".gitattributes"]


def _standing(repository: Repository, top: str, staged: str, paths: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """What the person's checkout has at these paths, in the same form."""
    found: dict[bytes, harvest.Stat] = {}
    standing = dict.fromkeys(paths, _NOTHING)
    root = os.fsencode(top)
    for path in paths:
        if above := _obstacle(root, path):
            if not _goes(above, paths):
                standing[path] = _OTHER
            continue
        try:
            status = os.lstat(os.path.join(root, path))
        except OSError:
            continue
        if stat.S_ISLNK(status.st_mode) or (
            stat.S_ISREG(status.st_mode) and os.access(os.path.join(root, path), os.R_OK)
        ):
            found[path] = status.st_mode, status.st_size, 0, 0, 0
        elif not stat.S_ISDIR(status.st_mode) or not all(_goes(one, paths) for one in _files(root, path)):
            standing[path] = _OTHER
    blobs = harvest.write_blobs(repository, top, repository.worktree, found, found, f"{staged}/links", keep=False)
    return standing | {path: harvest.mode_of(found[path]) + b" " + blob for path, blob in blobs.items()}


def _obstacle(root: bytes, path: bytes) -> bytes:
    """What stands where a folder of the path should be; empty when nothing does."""
    parts = path.split(b"/")[:-1]
    for length in range(1, len(parts) + 1):
        folder = b"/".join(parts[:length])
        try:
            if not stat.S_ISDIR(os.lstat(os.path.join(root, folder)).st_mode):
                return folder
        except OSError:
            break
    return b""


def _goes(path: bytes, paths: Mapping[bytes, bytes]) -> bool:
    """Whether a file is removed by the work; if it is not what it was, it is in the way by itself."""
    return paths.get(path) == _NOTHING


def _files(root: bytes, folder: bytes) -> Iterator[bytes]:
    """Everything in a folder that is not a folder itself."""
    for above, names, others in os.walk(os.path.join(root, folder)):
        links = [name for name in names if os.path.islink(os.path.join(above, name))]
        yield from (os.path.relpath(os.path.join(above, name), root) for name in (*links, *others))


def _remove_empty(path: bytes) -> None:
    """Remove a folder in which there are only folders."""
    if os.path.isdir(path) and not os.path.islink(path):
        for above, _, _ in os.walk(path, topdown=False):
            os.rmdir(above)


def _remove(root: bytes, path: bytes) -> None:
    """Remove a file, and the folders that are empty then."""
    try:
        os.unlink(os.path.join(root, path))
    except FileNotFoundError:
        return
    except OSError as error:
        raise WorkspaceError(f"{os.fsdecode(path)} cannot be removed: {error.strerror}") from None
    folder = os.path.dirname(path)
    while folder:
        try:
            os.rmdir(os.path.join(root, folder))
        except OSError:
            return
        folder = os.path.dirname(folder)
