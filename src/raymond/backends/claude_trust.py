"""The folders that a person told Claude Code to trust."""

import os
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from raymond.system import files

_MOST = 64 << 20


class _Folder(Struct, frozen=True, rename={"accepted": "hasTrustDialogAccepted"}):
    accepted: bool = False


class _Record(Struct, frozen=True):
    projects: dict[str, _Folder] = {}


def accepted(environment: Mapping[str, str] = os.environ) -> frozenset[str]:
    """Every folder for which the program asked, and the person agreed; none when its record cannot be read."""
    folder = environment.get("CLAUDE_CONFIG_DIR") or environment.get("HOME", "")
    try:
        path = os.path.realpath(os.path.join(folder, ".claude.json"))
        record = msgspec.json.decode(files.contents(path, _MOST), type=_Record)
    except (OSError, ValueError, RecursionError):
        return frozenset()
    return frozenset(path for path, one in record.projects.items() if one.accepted)
