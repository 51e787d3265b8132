"""The folder with the settings and conversations of Claude Code: the person's own, and the one of a run."""

import os
from collections.abc import Mapping
from typing import Any

from msgspec import json

from raymond.backends.json_lines import as_table, decode
from raymond.store import home as homes
from raymond.store.trust import top_of
from raymond.system.files import foreign
from raymond.workspace import home

_NAMES = (
    *("settings.json", "CLAUDE.md", "agents", "commands", "hooks"),
    *("output-styles", "plugins", "rules", "skills"),
)
"""What a run gets copies of."""
_OF_A_PROJECT = (
    *("hasTrustDialogAccepted", "hasClaudeMdExternalIncludesApproved", "allowedTools"),
    *("mcpServers", "enabledMcpjsonServers", "disabledMcpjsonServers"),
)
_STATE = ".claude.json"
_MOST = 64 << 20


def own(environment: Mapping[str, str] = os.environ) -> str:
    """The person's own."""
    return environment.get("CLAUDE_CONFIG_DIR") or os.path.join(environment.get("HOME", ""), ".claude")


def furnish(folder: str, cwd: str) -> None:
    """Make the folder of a run that works in `cwd`, once."""
    home.furnish(folder, own(), _NAMES, {_STATE: json.encode(_state(cwd))})


def _state(cwd: str, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Of what the program remembers, the servers and what the person said of this project."""
    path = os.path.join(environment.get("CLAUDE_CONFIG_DIR") or environment.get("HOME", ""), _STATE)
    try:
        known = decode(foreign(path, _MOST))
    except OSError:
        known = {}
    top = top_of(cwd)
    projects = {
        path: {name: about[name] for name in _OF_A_PROJECT if name in about}
        for path, about in as_table(known.get("projects")).items()
        if isinstance(about, dict) and (_is_below(cwd, path) or _is_below(path, top))
    }
    return {"hasCompletedOnboarding": True, "mcpServers": as_table(known.get("mcpServers")), "projects": projects}


def _is_below(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder.rstrip('/')}/")


def login() -> str:
    """The folder of a login that Raymond has for itself, which all runs share.

    The program renews a login in place and locks it by a folder beside this one. Both can be shared only as a whole,
    so nothing else is in here.
    """
    return os.path.join(homes.find().path, "logins", "claude")
