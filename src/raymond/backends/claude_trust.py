"""The folders that a person told Claude Code to trust."""

import os
from collections.abc import Mapping

import msgspec
from msgspec import Struct

_MOST = 64 << 20


class _Folder(Struct, frozen=True, rename={"accepted": "hasTrustDialogAccepted"}):
    accepted: bool = False


class _Record(Struct, frozen=True):
    projects: dict[str, _Folder] = {}


def accepted(environment: Mapping[str, str] = os.environ) -> frozenset[str]:
    """Every folder for which the program asked, and the person agreed; none when its record cannot be read."""
    folder = environment.get("CLAUDE_CONFIG_DIR") or environment.get("HOME", "")
    try:
        with open(os.path.join(folder, ".claude.json"), "rb") as file:
            record = msgspec.json.decode(file.read(_MOST), type=_Record)
    except (OSError, msgspec.DecodeError):
        return frozenset()
    return frozenset(path for path, one in record.projects.items() if one.accepted)
