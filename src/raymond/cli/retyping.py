"""The command that was typed, once more with the run that it was to name."""

import shlex

from raymond import pasted
from raymond.control import naming
from raymond.control.naming import SeveralRuns
from raymond.control.runs import RunRow
from raymond.errors import Error

_LONGEST = 100
"""Characters of what was typed that are repeated for every run."""


def spelled(error: Error, typed: list[str]) -> Error:
    """An error that lists runs gets the command for each; any other is as it was."""
    if not isinstance(error, SeveralRuns):
        return error
    return error.spelled(lambda row: _command(row, error.given, typed))


def _command(row: RunRow, given: str, typed: list[str]) -> str:
    at = _verb(typed)
    there = ["-C", pasted.word(row.project, "DIR")] if naming.needs_place(row) else [*map(shlex.quote, typed[:at])]
    words = _named(row.workflow_id, given, typed[at + 1 :])
    return " ".join(["raymond", *there, typed[at], *words])


def _verb(typed: list[str]) -> int:
    """Where the command is: after every -C with its directory."""
    at = 0
    while typed[at] == "-C":
        at += 2
    return at


def _named(id: str, given: str, words: list[str]) -> list[str]:
    """The words after the command with the id in place of what was given, quoted; "..." for what cannot be repeated."""
    plain = shlex.join(words)
    if len(plain) > _LONGEST or not plain.isprintable() or (given and words.count(given) != 1):
        return [id, "..."]
    if not given:
        return [id, *map(shlex.quote, words)]
    return [id if word == given else shlex.quote(word) for word in words]
