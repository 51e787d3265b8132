"""The command that was typed, once more: with the run that it was to name, or in the directory it was meant for."""

import shlex

from raymond import pasted
from raymond.control import naming
from raymond.control.naming import SeveralRuns
from raymond.control.runs import RunRow
from raymond.errors import Error, UsageError, WrongDirectory

_LONGEST = 100
"""Characters of what was typed that are repeated for every run."""


def spelled(error: Error, typed: list[str]) -> Error:
    """An error that lists runs gets the command for each, one about the directory that for the right one."""
    if isinstance(error, WrongDirectory):
        return UsageError(str(error), hint=_there(error.directory, typed))
    if not isinstance(error, SeveralRuns):
        return error
    return error.spelled(lambda row: _command(row, error.given, typed))


def _command(row: RunRow, given: str, typed: list[str]) -> str:
    at = _verb(typed)
    there = ["-C", pasted.word(row.project, "DIR")] if naming.needs_place(row) else [*map(shlex.quote, typed[:at])]
    words = _named(row.workflow_id, given, typed[at + 1 :])
    return " ".join(["raymond", *there, typed[at], *words])


def _there(directory: str, typed: list[str]) -> str:
    """All that was typed, in another directory: without one of its flags it could mean something else."""
    at = _verb(typed)
    before = [pasted.word(one, "DIR") for one in typed[:at]]
    after = [pasted.word(one, "...") for one in typed[at:]]
    return " ".join(["raymond", *before, pasted.flag("-C", directory, "DIR"), *after])


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
