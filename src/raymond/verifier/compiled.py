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
    with contextlib.suppress(PermissionError):
        os.chmod(folder, 0o700)  # an agent may have closed it
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir(folder):
            if name.endswith(".pyc") and name.partition(".")[0] in sources:
                os.unlink(os.path.join(folder, name))
