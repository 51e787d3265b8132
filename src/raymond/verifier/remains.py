"""What a verifier that was killed has left: files that are exchanged in a tree, and twins."""

import contextlib
import os

from raymond.patterns import regex
from raymond.system import folders

_TWIN = regex(r"([0-9]+)\.twin")


def put_back(seals: str) -> list[str]:
    """Give an agent its files back where a check was killed that had the sealed ones in their place; what to tell."""
    if not os.path.exists(os.path.join(seals, "swap")):
        return []
    from raymond.verifier import swap  # hardly any run needs it

    try:
        files = swap.recover(seals)
    except (OSError, ValueError) as error:
        return [f"a check was cut off, and the agent's files could not be put back from {seals}/swap.files: {error}"]
    notes = [f"a check was cut off: {', '.join(files)} is as the agent left it again"] if files else []
    if files and (kept := swap.kept(seals)):
        notes.append(f"somebody has written to them since, which stays; what the agent had is in {kept}")
    return notes


def remove_twins(seals: str, step: int = 0) -> None:
    """Remove the twin of a step, or of all steps: none of them may run. What cannot be removed stays until `clean`."""
    with contextlib.suppress(OSError), folders.opened(seals) as folder:
        for name in os.listdir(folder):
            found = _TWIN.fullmatch(name)
            if found and step in (0, int(found[1])):
                with contextlib.suppress(OSError):
                    # The kernel leaves a folder in an overlay that even its owner may not list.
                    os.chmod(os.path.join(name, "work", "work"), 0o700, dir_fd=folder)
                with contextlib.suppress(OSError):
                    folders.remove(name, folder)
