"""The hooks of a project."""

import os


def is_there(folder: str, name: str) -> bool:
    """Whether there is such a hook."""
    return bool(folder) and os.path.lexists(os.path.join(folder, name))
