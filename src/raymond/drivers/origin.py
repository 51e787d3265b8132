"""Where a request comes from: the process that made it, its terminal, and the steps it belongs to."""

import os
from collections.abc import Collection, Iterator
from typing import Literal

from msgspec.structs import replace

from raymond.errors import JournalError
from raymond.machine.requests import Request
from raymond.machine.sender import Given, Sender
from raymond.redaction import Secrets
from raymond.store import journal, lock
from raymond.store.run_folder import RunFolder
from raymond.system import process_tree
from raymond.system.stragglers import MARK

_LONGEST = 200
"""Characters of a command line that are kept."""


def this(way: Literal["face", "command"] = "command") -> Sender:
    """This process itself."""
    return of(os.getpid(), way)


def of(
    pid: int, way: Literal["face", "socket", "command"], *, drives: str = "", helpers: Collection[int] = ()
) -> Sender:
    """The sender that process `pid` is, as seen from the driver of the run `drives`, if we are one.

    Whatever is below one of our own `helpers` is no step of the run we drive.
    """
    try:
        line = process_tree.line(pid)
        # What the kernel knows comes first; a mark is only what a process was started with.
        keys = dict.fromkeys((*_driven(line, pid, drives, helpers), *_marked(line, pid)))
        agent = process_tree.agent_above(line, pid)
    except OSError:
        return Sender(way=way, pid=pid, unknown=True)
    terminal = process_tree.terminal(line[0]) if line else ""
    return Sender(way=way, pid=pid, terminal=terminal, steps=list(keys), agent=agent)


def described(sender: Sender, secrets: Secrets) -> Sender:
    """The sender with the beginning of its command line, for the journal."""
    return replace(sender, command=secrets.clean(process_tree.command(sender.pid))[:_LONGEST])


def signed(request: Request, sender: Sender, secrets: Secrets) -> Request:
    """The request with its sender, and with what a step can pass on, if that matters; not with what it says itself."""
    matters = sender.steps and request.kind == "limits"
    return replace(request, sender=described(sender, secrets), given=_given(sender.pid) if matters else None)


def _given(pid: int) -> Given | None:
    """What the run has in whose step process `pid` is; None when it cannot be found."""
    try:
        for folder in outer(pid)[:1]:
            run = journal.read(folder).run
            return Given(run.limits.budget or 0.0, run.rights.allowed, run.rights.skip)
    except (OSError, JournalError):
        pass
    return None


def outer(pid: int) -> list[RunFolder]:
    """The runs whose drivers a process is below, the innermost first."""
    found = (lock.driven_by(process.pid) for process in process_tree.line(pid) if process.pid != pid)
    return [folder for folder in found if folder]


def _driven(line: list[process_tree.Process], pid: int, drives: str, helpers: Collection[int]) -> Iterator[str]:
    """The runs whose drivers are above."""
    helped = False
    for process in line:
        helped = helped or process.pid in helpers
        if process.pid == pid:
            continue
        if drives and process.pid == os.getpid():
            if not helped:
                yield drives
            continue
        folder = lock.driven_by(process.pid)
        if folder:
            yield _key(folder)


def _key(folder: RunFolder) -> str:
    try:
        return journal.first(folder).key
    except JournalError:
        return folder.id  # it is a run all the same, and nobody was started inside of an id


def _marked(line: list[process_tree.Process], pid: int) -> Iterator[str]:
    """The runs whose marks the process or one above it carries: a turn outlives the driver that started it."""
    marks = [process_tree.variable(process.pid, MARK) for process in line]
    if not line and pid == os.getpid():
        marks = [os.environ.get(MARK, "")]  # a system without /proc
    for mark in (one for path in marks for one in reversed(path.split(":"))):
        if mark:
            yield mark.partition("/")[0]
