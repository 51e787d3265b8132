"""Remove runs, and what no run needs any more.

By descriptor, and only names of the form that Raymond gives: no link is followed, and nothing else goes. A live run and
one that is just starting need nothing that is removed here.
"""

import os
from collections.abc import Callable, Iterator
from time import time

from raymond.errors import JournalError
from raymond.patterns import regex
from raymond.store import exports, lock
from raymond.store import project as projects
from raymond.store.home import Home
from raymond.store.leftovers import Leftovers
from raymond.store.project import Project
from raymond.store.run_folder import ID_FORM
from raymond.system import files, folders

GRACE = 3600.0
"""Seconds for which what nobody refers to is kept: somebody may be about to."""
_SOURCE = regex(r"[0-9a-f]{64}\.zip")
_DIGEST = regex(r"[0-9a-f]{64}")
_UNFINISHED = regex(r"\.[A-Za-z0-9_-]{1,100}\.[0-9a-f]{8}\.(new|old)")
"""What a process that was killed left of a folder that it made or removed."""
_ABOUT_ASIDE = regex(r"project\.json\.[0-9a-f]{8}\.tmp")
_ASIDE = regex(r"[0-9a-f]{64}\.zip\.[0-9a-f]{8}\.tmp")


def remove_run(
    project: Project,
    id: str,
    left: Leftovers | None = None,
    *,
    finished: bool = True,
    first: Callable[[], None] = lambda: None,
) -> None:
    """Remove a run: what it `left` running and in its project, then its folder, gone as soon as that lost its name.

    `first` is called when nothing of it runs any more.
    """
    # Of a finished run, the name of a host that died does not count; whoever holds the lock is always respected.
    # Nothing is signed: a disk that is full is a reason to remove runs.
    held = lock.take(project.run(id), force=finished, sign=False, has_flag=False)
    path = project.run(id).path
    try:
        if left:
            left.end()
        first()
        exports.remove(project.tree, id)
        with folders.opened(project.runs) as runs:
            gone = f".{id}.{os.urandom(4).hex()}.old"
            os.rename(id, gone, src_dir_fd=runs, dst_dir_fd=runs)
            path = f"{project.runs}/{gone}"
            folders.remove(gone, runs)
    except OSError as error:
        raise _stays(path, error) from None
    finally:
        held.release()


def unused(project: Project) -> Iterator[str | JournalError]:
    """What could go: what is half made or half removed, snapshots that no run has, and what was unpacked from them.

    A folder that cannot be looked into is an error, and the others follow.
    """
    home = project.home
    yield from _old(project.root, lambda name: bool(_ABOUT_ASIDE.fullmatch(name)))
    yield from _old(project.runs, lambda name: bool(_UNFINISHED.fullmatch(name)) or _is_empty(project, name))
    yield from _old(home.sources, lambda name: _is_unneeded(home, name))
    yield from _old(home.work, lambda name: _is_orphan(home, name) and not _is_shared(home, name))
    yield from _old(home.projects, lambda name: projects.is_forgotten(home, name))
    yield from exports.leftovers(project.tree, time() - GRACE)


def remove_unused(project: Project) -> Iterator[str | JournalError]:
    """Remove what is unused; the paths that are gone, and an error for each that stays."""
    for found in list(unused(project)):
        yield found if isinstance(found, JournalError) else _remove(project, found)


def _remove(project: Project, path: str) -> str | JournalError:
    above, name = os.path.split(path)
    try:
        if exports.remove_leftover(project.tree, path):
            return path
        with folders.opened(above) as fd:
            if above == project.home.work:
                _remove_work(project.home, name, fd)
            elif above == project.home.projects:
                projects.forget(project.home, name, fd)
            else:
                folders.remove(name, fd)
    except OSError as error:
        return _stays(path, error)
    return path


def _stays(path: str, error: OSError) -> JournalError:
    return files.trouble(path, error, hint="it cannot be removed: fix this, then run `raymond clean` again")


def _old(folder: str, wanted: Callable[[str], bool]) -> Iterator[str | JournalError]:
    before = time() - GRACE
    try:
        names = os.listdir(folder) if folders.is_folder(folder) else []
    except FileNotFoundError:
        return
    except OSError as error:
        yield _stays(folder, error)
        return
    for name in sorted(names):
        try:
            if wanted(name) and os.lstat(f"{folder}/{name}").st_mtime < before:
                yield f"{folder}/{name}"
        except FileNotFoundError:
            continue
        except OSError as error:
            yield _stays(f"{folder}/{name}", error)


def _is_empty(project: Project, name: str) -> bool:
    """Whether the folder of a run has lost its journal."""
    path = project.run(name).path
    return bool(ID_FORM.fullmatch(name)) and folders.is_folder(path) and not project.run(name).exists


def _is_unneeded(home: Home, name: str) -> bool:
    """Whether a snapshot is in no folder of a run. A run that links it meanwhile keeps it under its own name."""
    if _ASIDE.fullmatch(name):
        return True
    return bool(_SOURCE.fullmatch(name)) and os.lstat(f"{home.sources}/{name}").st_nlink == 1


def _is_orphan(home: Home, name: str) -> bool:
    """Whether an unpacked workflow has no snapshot that a run needs."""
    if _UNFINISHED.fullmatch(name):
        return True
    if not _DIGEST.fullmatch(name):
        return False
    source = f"{name}.zip"
    return not os.path.lexists(f"{home.sources}/{source}") or _is_unneeded(home, source)


def _is_shared(home: Home, name: str) -> bool:
    """Whether somebody runs scripts from there."""
    try:
        with folders.opened(f"{home.work}/{name}") as fd:
            return not folders.claim(fd)
    except OSError:
        return False


def _remove_work(home: Home, name: str, work: int) -> None:
    """Take the folder from everybody, and its name, before anything in it goes."""
    if not folders.is_folder(f"{home.work}/{name}"):
        return folders.remove(name, work)
    with folders.opened(name, inside=work) as fd:
        if folders.claim(fd):
            gone = f".{name[:64].strip('.')}.{os.urandom(4).hex()}.old"
            os.rename(name, gone, src_dir_fd=work, dst_dir_fd=work)
            folders.remove(gone, work)
