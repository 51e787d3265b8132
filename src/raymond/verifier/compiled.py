"""Compiled files of Python: an agent can change one so that it is taken for its source, so none is left to a check."""

import contextlib
import os

from raymond.verifier.tree import walk

_FOLDER = "__pycache__"


def remove(top: str) -> None:
    """Remove those of the tree; Python makes them again. What is installed in it keeps its own.

    OSError: one cannot be removed, so nothing that Python says could be believed.
    """
    for folder, files, below in walk(top, frozenset()):
        if _FOLDER in files:  # a link: what is behind it is not ours to remove
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(top, folder, _FOLDER))
        if _FOLDER in below:
            sources = {name.removesuffix(".py") for name in files if name.endswith(".py")}
            _clear(os.path.join(top, folder, _FOLDER), sources)


def _clear(folder: str, sources: set[str]) -> None:
    for name in _listed(folder):
        if name.endswith(".pyc") and name.partition(".")[0] in sources:
            _unlink(os.path.join(folder, name))


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except PermissionError:
        if not _is_ours(folder):
            return []
        _open_up(folder)
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except PermissionError:
        if _is_ours(os.path.dirname(path)):
            _open_up(os.path.dirname(path))
            os.unlink(path)


def _is_ours(folder: str) -> bool:
    """Whether we can open a folder up; what only others can change, an agent has not changed either."""
    return os.lstat(folder).st_uid == os.geteuid()


def _open_up(folder: str) -> None:
    """An agent may have closed it."""
    with contextlib.suppress(PermissionError):
        os.chmod(folder, 0o700)
