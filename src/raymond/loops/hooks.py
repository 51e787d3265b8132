"""The hooks of a project: what there is in their folder."""

import os

from raymond.digests import sha256
from raymond.system import files


def hooks_in(folder: str) -> str:
    """A digest of all hooks in a folder, with their rights, and of where they are; of a link, also what it leads to."""
    found = sha256(os.fsencode(folder))
    for name in sorted(listed(folder)):
        path = os.path.join(folder, name)
        if name.endswith(".sample"):
            continue
        try:
            leads = b"\0" + os.readlink(os.fsencode(path)) + b"\0" if os.path.islink(path) else b""
            real = os.path.realpath(path)
            found.update(os.fsencode(name) + leads + b"\0" + files.contents(real) + b"\0")
            found.update(str(os.lstat(real).st_mode).encode())
        except OSError:
            found.update(f"{name} cannot be read".encode("utf-8", "surrogateescape"))
    return found.hexdigest()


def is_there(folder: str, name: str) -> bool:
    """Whether there is such a hook."""
    return bool(folder) and os.path.lexists(os.path.join(folder, name))


def listed(folder: str) -> list[str]:
    """The names in a folder; none when it cannot be read."""
    try:
        return os.listdir(folder)
    except OSError:
        return []
