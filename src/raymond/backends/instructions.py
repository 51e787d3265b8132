"""The instructions that a project keeps for agents: handed on where its settings are not used. They are only text."""

import contextlib
import os
from collections.abc import Iterator

from raymond.store.trust import top_of
from raymond.system import files


def read(cwd: str, name: str, most: int) -> str:
    """What the file `name` says at the top level of the project and in `cwd`, at most `most` bytes of each."""
    return "\n\n".join(_sections(cwd, name, most))


def _sections(cwd: str, name: str, most: int) -> Iterator[str]:
    top = top_of(cwd)
    for folder in dict.fromkeys((top, os.path.realpath(cwd))):
        path = os.path.join(folder, name)
        real = os.path.realpath(path)
        if os.path.commonpath([top, real]) != top:
            continue  # a link that leads out of the project could name any file of the person's
        with contextlib.suppress(OSError):
            said = files.contents(real, most).decode("utf-8", "ignore").strip()
            if said:
                yield f"Contents of {path} (project instructions, checked into the codebase):\n\n{said}"
