"""What Claude Code may do in Raymond's own places, as settings for one turn.

They are JSON of their own, apart from the tools a workflow names: nothing written there can end a rule early.
"""

import os
from collections.abc import Iterable

from msgspec import json

from raymond.backends import Places
from raymond.patterns import regex

# A rule holds a pattern as in .gitignore. `?` is not among these: the program does not understand it escaped, and as it
# is it matches any character, itself included.
_OF_PATTERNS = regex(r"[\\*\[\]!#]| (?= *\Z)")
_OF_RULES = regex(r"[\\()]")


def settings(places: Places, task_folder: str) -> str:
    """The settings for a turn; empty when there is nothing to say."""
    said = {
        "deny": [
            *_rules("Read", places.hidden),
            *_rules("Edit", (*places.hidden, *places.readable, *places.fixed)),
        ],
        # `--add-dir` would also load the skills, commands and agents it finds in these folders.
        "allow": _rules("Read", places.readable),
        "additionalDirectories": [task_folder] if task_folder else [],
    }
    permissions = {name: value for name, value in said.items() if value}
    return json.encode({"permissions": permissions}).decode() if permissions else ""


def _rules(tool: str, paths: Iterable[str]) -> list[str]:
    """A rule on a folder covers it and all below it; behind a link it can only be read when both names are allowed."""
    both = dict.fromkeys(one for path in paths for one in (path, os.path.realpath(path)))
    return [f"{tool}(/{_escaped(path)})" for path in both]


def _escaped(path: str) -> str:
    return _OF_RULES.sub(r"\\\g<0>", _OF_PATTERNS.sub(r"\\\g<0>", path))
