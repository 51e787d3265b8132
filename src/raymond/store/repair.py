"""Repair a damaged journal: keep a copy, cut it at the bad line, and report what was lost."""

import os
from time import strftime

from msgspec import Struct

from raymond.errors import JournalError, UsageError
from raymond.machine.events import Decision, StepFinished
from raymond.store import journal, lock
from raymond.store.project import Project
from raymond.system import files


class Repair(Struct):
    """What a repair did."""

    copy: str
    line: int
    decisions: int
    """Good decisions after the bad line, which are lost with it."""
    steps: list[str]
    """The finished steps among them; they run again."""


def repair(project: Project, id: str) -> Repair:
    """Cut the journal of `id` at its first bad line."""
    held = lock.take(project.beside(id, "lock"), run=id)
    try:
        path = project.journal(id)
        number = _first_bad(project, id)
        with open(path, "rb") as file:
            data = file.read()
        lines = data.split(b"\n")
        lost = list(journal.salvage(project, path, lines[number:]))
        copy = f"{path}.{strftime('%Y%m%dT%H%M%S')}.damaged"
        files.replace(copy, data, durable=True)
        files.replace(path, b"".join(line + b"\n" for line in lines[: number - 1]), durable=True)
        if os.path.exists(project.beside(id, "snap")):
            os.unlink(project.beside(id, "snap"))
    finally:
        held.release()
    return Repair(copy, number, len(lost), _steps(lost))


def _first_bad(project: Project, id: str) -> int:
    try:
        journal.decisions(project, id)
    except JournalError as error:
        if error.line > 2:
            return error.line
        raise
    raise UsageError(f"the journal of {id} is not damaged", hint=f"`raymond resume {id}` continues the run")


def _steps(lost: list[Decision]) -> list[str]:
    finished = [event for decision in lost for event in decision.events if isinstance(event, StepFinished)]
    return [f"step {event.step} of {event.agent}" for event in finished]
