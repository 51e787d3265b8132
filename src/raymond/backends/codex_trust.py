"""Tell Codex whether it may use the settings of a project.

Left to itself it writes into the user's settings that every project is trusted in which it may edit, and uses what it
finds there. What it is told for one turn it neither asks about nor writes down.
"""

import os
from collections.abc import Mapping
from typing import Any

from msgspec import json

from raymond.backends import instructions
from raymond.patterns import regex
from raymond.store.trust import top_of

_INSTRUCTIONS = "AGENTS.md"
_MOST_INSTRUCTIONS = 32 << 10
"""Bytes; the program itself reads no more."""
_NO_TEXT = regex(r"[\x00-\x08\x0b-\x1f\x7f]")
"""What TOML does not take in a text as it is."""


def flags(cwd: str, own: Mapping[str, Any], *, is_trusted: bool, instructs: bool = True) -> list[str]:
    """The flags for a turn in `cwd`; `own` are the user's settings, `instructs` hands on the project's instructions."""
    if is_trusted:
        return ["-c", _projects("trusted", top_of(cwd))]
    told = ["-c", _projects("untrusted", os.path.realpath(cwd), top_of(cwd))]
    said = _NO_TEXT.sub("", instructions.read(cwd, _INSTRUCTIONS, _MOST_INSTRUCTIONS)) if instructs else ""
    if said:
        # These are left out with the settings. The user's own would be replaced, so they come first.
        before = own.get("developer_instructions")
        said = f"{before}\n\n{said}" if isinstance(before, str) and before else said
        told += ["-c", f"developer_instructions={json.encode(said).decode()}"]
    return told


def _projects(level: str, *folders: str) -> str:
    """A table, since the program splits the name of a setting at every dot, also at one in a path."""
    named = (f'{json.encode(folder).decode()}={{trust_level="{level}"}}' for folder in dict.fromkeys(folders))
    return f"projects={{{','.join(named)}}}"
