"""The environment of a check: that of the run, without what could change the check unseen."""

import os
from collections.abc import Mapping

_UNSAFE = (
    *("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "NODE_OPTIONS", "BASH_ENV", "ENV"),
    *("MAKEFLAGS", "MFLAGS", "GNUMAKEFLAGS", "MAKEFILES", "MAKELEVEL"),
)
_UNSAFE_BEGINNINGS = ("LD_", "GIT_", "RAYMOND_", "BASH_FUNC_")
"""Variables with which an earlier step, or whoever started us, could change what a check does."""


CACHES = ("MYPY_CACHE_DIR", "RUFF_CACHE_DIR")
"""What tools remember beside the files that they read: an agent could have changed it."""


def environment(given: Mapping[str, str], more: Mapping[str, str], caches: str) -> dict[str, str]:
    """`given` as a check finds it, with `more`; what tools remember is kept in `caches`, and nowhere else."""
    env = {
        name: value for name, value in given.items() if name not in _UNSAFE and not name.startswith(_UNSAFE_BEGINNINGS)
    }
    env["PATH"] = os.pathsep.join(filter(os.path.isabs, env.get("PATH", os.defpath).split(os.pathsep)))
    return {**env, **dict.fromkeys(CACHES, caches), **more}


def apart(env: Mapping[str, str], name: str) -> dict[str, str]:
    """`env` for a run whose tools remember nothing of any other."""
    return {key: f"{value}-{name}" if key in CACHES else value for key, value in env.items()}
